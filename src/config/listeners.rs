//! `listeners`, `advertised.listeners` and the map from their names to security protocols.

use std::collections::BTreeMap;

use super::reader::Reader;
use crate::metadata::config::value::split_list;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurityProtocol {
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

impl SecurityProtocol {
    pub fn parse(text: &str) -> Option<SecurityProtocol> {
        match text.to_ascii_uppercase().as_str() {
            "PLAINTEXT" => Some(SecurityProtocol::Plaintext),
            "SSL" => Some(SecurityProtocol::Ssl),
            "SASL_PLAINTEXT" => Some(SecurityProtocol::SaslPlaintext),
            "SASL_SSL" => Some(SecurityProtocol::SaslSsl),
            _ => None,
        }
    }
}

/// Where the broker listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// In capitals, as Kafka compares listener names.
    pub name: String,
    pub protocol: SecurityProtocol,
    /// `None`: every address of the machine.
    pub host: Option<String>,
    /// 0: whichever port is free.
    pub port: u16,
    /// Carries controller traffic and no clients.
    pub is_controller: bool,
}

/// Where clients are told to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvertisedListener {
    pub name: String,
    pub host: String,
    pub port: u16,
}

pub struct Listeners {
    pub listeners: Vec<Listener>,
    /// Empty: each client is told the address it reached us by.
    pub advertised: Vec<AdvertisedListener>,
    pub inter_broker: String,
    pub controllers: Vec<String>,
}

/// Reads all listener settings; mistakes go to the reader.
pub fn read(reader: &Reader<'_>) -> Listeners {
    let controllers: Vec<String> = names(&reader.list("controller.listener.names"));
    let protocols = protocols(reader, &controllers);
    let mut listeners = Vec::new();
    for text in reader.list("listeners") {
        match listener(&text, &protocols, &controllers) {
            Ok(listener) => add(reader, &mut listeners, listener),
            Err(problem) => reader.problem(format!("listeners: {problem}")),
        }
    }
    let advertised = advertised(reader, &listeners);
    let inter_broker = inter_broker(reader, &listeners);
    Listeners { listeners, advertised, inter_broker, controllers }
}

fn names(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| text.to_ascii_uppercase()).collect()
}

fn protocols(reader: &Reader<'_>, controllers: &[String]) -> BTreeMap<String, SecurityProtocol> {
    let mut protocols = BTreeMap::new();
    for entry in split_list(&reader.text("listener.security.protocol.map")) {
        match entry.split_once(':').and_then(|(name, protocol)| Some((name, SecurityProtocol::parse(protocol)?))) {
            Some((name, protocol)) => drop(protocols.insert(name.to_ascii_uppercase(), protocol)),
            None => reader.problem(format!(
                "listener.security.protocol.map: {entry}: expected NAME:PROTOCOL with PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"
            )),
        }
    }
    if !reader.is_set("listener.security.protocol.map") {
        for controller in controllers {
            protocols.entry(controller.clone()).or_insert(SecurityProtocol::Plaintext);
        }
    }
    protocols
}

fn listener(
    text: &str,
    protocols: &BTreeMap<String, SecurityProtocol>,
    controllers: &[String],
) -> Result<Listener, String> {
    let (name, host, port) = endpoint(text)?;
    let protocol = protocols.get(&name).copied().ok_or_else(|| {
        format!("no security protocol for listener {name}: add {name}:PLAINTEXT to listener.security.protocol.map")
    })?;
    if protocol != SecurityProtocol::Plaintext {
        return Err(format!("{text}: only PLAINTEXT listeners are there so far; TLS and SASL come later"));
    }
    let is_controller = controllers.contains(&name);
    Ok(Listener { name, protocol, host: Some(host).filter(|host| !host.is_empty()), port, is_controller })
}

/// `NAME://host:port`; an IPv6 host may stand in brackets, a host may be missing.
fn endpoint(text: &str) -> Result<(String, String, u16), String> {
    let parts = text.split_once("://").and_then(|(name, address)| Some((name, address.rsplit_once(':')?)));
    let Some((name, (host, port))) = parts.filter(|(name, _)| !name.is_empty()) else {
        return Err(format!("{text}: expected NAME://host:port"));
    };
    let port = port.parse().map_err(|_| format!("{text}: {port} is no port"))?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Ok((name.to_ascii_uppercase(), host.to_owned(), port))
}

fn add(reader: &Reader<'_>, listeners: &mut Vec<Listener>, listener: Listener) {
    if listeners.iter().any(|other| other.name == listener.name) {
        reader.problem(format!("listeners: two listeners are called {}", listener.name));
    } else if listener.port != 0
        && listeners.iter().any(|other| other.port == listener.port && other.host == listener.host)
    {
        reader.problem(format!("listeners: two listeners have port {}", listener.port));
    } else {
        listeners.push(listener);
    }
}

fn advertised(reader: &Reader<'_>, listeners: &[Listener]) -> Vec<AdvertisedListener> {
    let mut advertised = Vec::new();
    for text in reader.list("advertised.listeners") {
        match endpoint(&text) {
            Ok((name, host, port)) => {
                if !listeners.iter().any(|listener| listener.name == name) {
                    reader.problem(format!("advertised.listeners: {text}: no listener is called {name}"));
                } else if host.is_empty() || host == "0.0.0.0" || host == "::" {
                    reader.problem(format!(
                        "advertised.listeners: {text}: clients cannot connect to every address; name one"
                    ));
                } else {
                    advertised.push(AdvertisedListener { name, host, port });
                }
            }
            Err(problem) => reader.problem(format!("advertised.listeners: {problem}")),
        }
    }
    advertised
}

fn inter_broker(reader: &Reader<'_>, listeners: &[Listener]) -> String {
    let named = reader.optional_text("inter.broker.listener.name").filter(|name| !name.is_empty());
    let protocol = reader.text("security.inter.broker.protocol");
    let clients = || listeners.iter().filter(|listener| !listener.is_controller);
    match named.map(|name| name.to_ascii_uppercase()) {
        Some(name) => {
            // Kafka lets a node that is only a controller name the brokers' listener.
            let has_clients = clients().next().is_some();
            if has_clients && !clients().any(|listener| listener.name == name) {
                reader.problem(format!("inter.broker.listener.name: no listener for clients is called {name}"));
            }
            name
        }
        None => {
            let by_protocol = clients().find(|listener| listener.name == protocol).or_else(|| clients().next());
            by_protocol.map(|listener| listener.name.clone()).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(pairs: &[(&str, &str)]) -> (Listeners, Vec<String>) {
        let properties = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let reader = Reader::new(&properties);
        let listeners = read(&reader);
        let (_, problems) = reader.finish();
        (listeners, problems)
    }

    fn problems(pairs: &[(&str, &str)]) -> String {
        read_all(pairs).1.join("\n")
    }

    #[test]
    fn the_default_is_one_local_listener() {
        let (found, problems) = read_all(&[]);
        assert_eq!(problems, Vec::<String>::new());
        let expected = Listener {
            name: "PLAINTEXT".into(),
            protocol: SecurityProtocol::Plaintext,
            host: Some("127.0.0.1".into()),
            port: 9092,
            is_controller: false,
        };
        assert_eq!(found.listeners, [expected]);
        assert_eq!((found.advertised, found.inter_broker.as_str()), (vec![], "PLAINTEXT"));
    }

    #[test]
    fn controllers_have_listeners_of_their_own() {
        let (found, problems) = read_all(&[
            ("listeners", "CONTROLLER://:9093,internal://[::1]:9092"),
            ("listener.security.protocol.map", "CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT"),
            ("controller.listener.names", "CONTROLLER"),
        ]);
        assert_eq!(problems, Vec::<String>::new());
        let shown: Vec<_> =
            found.listeners.iter().map(|one| (one.name.as_str(), one.host.as_deref(), one.is_controller)).collect();
        assert_eq!(shown, [("CONTROLLER", None, true), ("INTERNAL", Some("::1"), false)]);
        assert_eq!(found.inter_broker, "INTERNAL");
    }

    #[test]
    fn mistakes_are_named() {
        assert!(problems(&[("listeners", "localhost:9092")]).contains("expected NAME://host:port"));
        assert!(problems(&[("listeners", "PLAINTEXT://:x")]).contains("x is no port"));
        assert!(problems(&[("listeners", "X://:1")]).contains("add X:PLAINTEXT to listener.security.protocol.map"));
        assert!(problems(&[("listeners", "SSL://:1")]).contains("only PLAINTEXT"));
        assert!(
            problems(&[("listeners", "PLAINTEXT://a:1,plaintext://a:2")])
                .contains("two listeners are called PLAINTEXT")
        );
        assert!(problems(&[("advertised.listeners", "OTHER://a:1")]).contains("no listener is called OTHER"));
        assert!(problems(&[("advertised.listeners", "PLAINTEXT://0.0.0.0:1")]).contains("every address"));
        assert!(problems(&[("inter.broker.listener.name", "X")]).contains("no listener for clients is called X"));
    }
}
