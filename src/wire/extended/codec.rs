//! A small codec for messages that are written down as a list of fields: [`message!`] makes the struct, its defaults, and both
//! directions from one line a field. Tagged fields are skipped; none of these messages has one of its own.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use uuid::Uuid;

use super::write::{put_count, put_text};
use crate::wire::messages::{BrokerId, GroupId, ProducerId, StrBytes, TopicName, TransactionalId};
use crate::wire::table::lookup;

/// Room taken at once for a declared count; more is taken as elements really come.
const ELEMENTS_AT_ONCE_MAX: usize = 1024;

pub(in crate::wire) struct Reader {
    rest: Bytes,
    pub version: i16,
    flexible: bool,
}

pub(in crate::wire) struct Writer<'a> {
    pub buffer: &'a mut BytesMut,
    pub version: i16,
    pub flexible: bool,
}

/// What stands in a message. Errors are sentences for the log.
pub(in crate::wire) trait Value: Sized {
    fn read(from: &mut Reader) -> Result<Self, String>;
    fn write(&self, to: &mut Writer<'_>) -> Result<(), String>;
}

pub(in crate::wire) fn read_message<T: Value>(key: i16, version: i16, body: Bytes) -> Result<T, String> {
    T::read(&mut Reader { rest: body, version, flexible: is_flexible(key, version) })
}

pub(in crate::wire) fn write_message<T: Value>(
    key: i16,
    version: i16,
    message: &T,
    buffer: &mut BytesMut,
) -> Result<(), String> {
    message.write(&mut Writer { buffer, version, flexible: is_flexible(key, version) })
}

fn is_flexible(key: i16, version: i16) -> bool {
    lookup(key).is_some_and(|api| api.is_flexible(version))
}

impl Reader {
    fn take(&mut self, length: usize) -> Result<Bytes, String> {
        if length > self.rest.len() {
            return Err(format!("{length} bytes needed, {} left", self.rest.len()));
        }
        Ok(self.rest.split_to(length))
    }

    /// A length or count: compact in flexible versions, else an i16 for texts and an i32 for the rest. `None` is null.
    fn length(&mut self, of_text: bool) -> Result<Option<usize>, String> {
        if self.flexible {
            return Ok(self.varint()?.checked_sub(1).map(|length| length as usize));
        }
        let declared = if of_text { i32::from(i16::read(self)?) } else { i32::read(self)? };
        match declared {
            -1 => Ok(None),
            0.. => Ok(Some(declared.unsigned_abs() as usize)),
            _ => Err(format!("length {declared}")),
        }
    }

    fn varint(&mut self) -> Result<u32, String> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = u8::read(self)?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("varint of more than 32 bits".to_owned())
    }

    pub fn skip_tags(&mut self) -> Result<(), String> {
        if !self.flexible {
            return Ok(());
        }
        for _ in 0..self.varint()? {
            self.varint()?;
            let size = self.varint()? as usize;
            self.take(size)?;
        }
        Ok(())
    }
}

macro_rules! numbers {
    ($($type:ty: $get:ident $put:ident;)*) => {
        $(impl Value for $type {
            fn read(from: &mut Reader) -> Result<Self, String> {
                from.rest.$get().map_err(|error| error.to_string())
            }

            fn write(&self, to: &mut Writer<'_>) -> Result<(), String> {
                to.buffer.$put(*self);
                Ok(())
            }
        })*
    };
}

numbers! {
    u8: try_get_u8 put_u8;
    i8: try_get_i8 put_i8;
    i16: try_get_i16 put_i16;
    u16: try_get_u16 put_u16;
    i32: try_get_i32 put_i32;
    i64: try_get_i64 put_i64;
}

impl Value for bool {
    fn read(from: &mut Reader) -> Result<Self, String> {
        Ok(u8::read(from)? != 0)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), String> {
        u8::from(*self).write(to)
    }
}

impl Value for Uuid {
    fn read(from: &mut Reader) -> Result<Self, String> {
        from.rest.try_get_u128().map(Uuid::from_u128).map_err(|error| error.to_string())
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), String> {
        to.buffer.put_slice(self.as_bytes());
        Ok(())
    }
}

impl Value for Option<StrBytes> {
    fn read(from: &mut Reader) -> Result<Self, String> {
        let Some(length) = from.length(true)? else { return Ok(None) };
        StrBytes::from_utf8(from.take(length)?).map(Some).map_err(|error| error.to_string())
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), String> {
        put_text(to.buffer, to.flexible, self.as_deref())
    }
}

impl Value for Option<Bytes> {
    fn read(from: &mut Reader) -> Result<Self, String> {
        match from.length(false)? {
            Some(length) => from.take(length).map(Some),
            None => Ok(None),
        }
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), String> {
        put_count(to.buffer, to.flexible, self.as_ref().map(Bytes::len))?;
        to.buffer.put_slice(self.as_deref().unwrap_or_default());
        Ok(())
    }
}

impl<T: Value> Value for Option<Vec<T>> {
    fn read(from: &mut Reader) -> Result<Self, String> {
        let Some(count) = from.length(false)? else { return Ok(None) };
        let mut elements = Vec::with_capacity(count.min(ELEMENTS_AT_ONCE_MAX));
        for _ in 0..count {
            elements.push(T::read(from)?);
        }
        Ok(Some(elements))
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), String> {
        put_count(to.buffer, to.flexible, self.as_ref().map(Vec::len))?;
        self.iter().flatten().try_for_each(|element| element.write(to))
    }
}

impl<T: Value> Value for Vec<T> {
    fn read(from: &mut Reader) -> Result<Self, String> {
        Option::<Vec<T>>::read(from)?.ok_or_else(|| "array is null".to_owned())
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), String> {
        put_count(to.buffer, to.flexible, Some(self.len()))?;
        self.iter().try_for_each(|element| element.write(to))
    }
}

impl Value for StrBytes {
    fn read(from: &mut Reader) -> Result<Self, String> {
        Option::<StrBytes>::read(from)?.ok_or_else(|| "text is null".to_owned())
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), String> {
        put_text(to.buffer, to.flexible, Some(self.as_str()))
    }
}

macro_rules! named {
    ($($type:ident)*) => {
        $(impl Value for $type {
            fn read(from: &mut Reader) -> Result<Self, String> {
                Value::read(from).map($type)
            }

            fn write(&self, to: &mut Writer<'_>) -> Result<(), String> {
                self.0.write(to)
            }
        })*
    };
}

named! { GroupId TopicName TransactionalId ProducerId BrokerId }

impl Value for Option<GroupId> {
    fn read(from: &mut Reader) -> Result<Self, String> {
        Ok(Option::<StrBytes>::read(from)?.map(GroupId))
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), String> {
        put_text(to.buffer, to.flexible, self.as_ref().map(|group| group.0.as_str()))
    }
}

/// Structs from lists of fields: `name: Type [versions] = default;`, both ends as in the protocol's facts. A field without versions
/// stands in all of them, one without a default has its type's.
macro_rules! message {
    ($($(#[$meta:meta])* $name:ident {
        $($(#[$field_meta:meta])* $field:ident: $type:ty $([$versions:expr])? $(= $default:expr)?;)*
    })*) => {
        $($(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $crate::wire::extended::codec::or_default!($($default)?),)* }
            }
        }

        impl $crate::wire::extended::codec::Value for $name {
            fn read(from: &mut $crate::wire::extended::codec::Reader) -> Result<Self, String> {
                let mut message = $name::default();
                $(if $crate::wire::extended::codec::is_in!(from.version $(, $versions)?) {
                    message.$field = $crate::wire::extended::codec::Value::read(from)?;
                })*
                from.skip_tags()?;
                Ok(message)
            }

            fn write(&self, to: &mut $crate::wire::extended::codec::Writer<'_>) -> Result<(), String> {
                $(if $crate::wire::extended::codec::is_in!(to.version $(, $versions)?) {
                    $crate::wire::extended::codec::Value::write(&self.$field, to)?;
                })*
                $crate::wire::extended::write::put_no_tags(to.buffer, to.flexible);
                Ok(())
            }
        }

        impl $crate::wire::extended::codec::Value for Option<$name> {
            fn read(from: &mut $crate::wire::extended::codec::Reader) -> Result<Self, String> {
                match i8::read(from)? {
                    1 => $crate::wire::extended::codec::Value::read(from).map(Some),
                    _ => Ok(None),
                }
            }

            fn write(&self, to: &mut $crate::wire::extended::codec::Writer<'_>) -> Result<(), String> {
                match self {
                    Some(message) => 1i8.write(to).and_then(|()| message.write(to)),
                    None => (-1i8).write(to),
                }
            }
        })*
    };
}

macro_rules! or_default {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}

macro_rules! is_in {
    ($version:expr) => {
        true
    };
    ($version:expr, $versions:expr) => {
        ($versions).contains(&$version)
    };
}

pub(in crate::wire) use {is_in, message, or_default};
