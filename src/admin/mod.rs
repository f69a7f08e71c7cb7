//! Floor 8: the operator's HTTP door: `/metrics` for Prometheus, `/livez` and `/readyz` for whoever supervises the process.
//! Small and bounded: a stranger can hold a connection open, but not for long, not many of them, and not a thread.

mod doorman;
mod process;
mod readiness;
mod sources;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Semaphore;

pub use process::ProcessSource;
pub use readiness::Readiness;
pub use sources::BrokerSource;

use crate::host::net::TcpListener;
use crate::host::task;
use crate::telemetry::Telemetry;
use doorman::Doorman;

/// Scrapes that may wait for the one being made; more are told to come back.
const SCRAPES_MAX: usize = 4;

/// How long the door waits for answers under way when the broker stops.
const GOODBYE: Duration = Duration::from_secs(2);

const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT_TYPE: &str = "text/plain; charset=utf-8";

/// What the pages are made of.
#[derive(Clone)]
struct Pages {
    telemetry: Arc<Telemetry>,
    readiness: Arc<Readiness>,
    scrapes: Arc<Semaphore>,
}

/// Binds `http.listener`.
///
/// # Errors
/// Names the address, so that the line that reports it says which setting to change.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let named = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::AddrInUse => "; another broker may be running on it; set http.listener",
            _ => "",
        };
        io::Error::new(error.kind(), format!("http.listener {address}: {error}{hint}"))
    };
    TcpListener::bind(address).await.map_err(named)
}

/// Serves until `stop` resolves, then finishes what is under way, for two seconds at most.
pub async fn serve(
    listener: TcpListener,
    telemetry: Arc<Telemetry>,
    readiness: Arc<Readiness>,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    serve_with_goodbye(listener, telemetry, readiness, stop, GOODBYE).await;
}

async fn serve_with_goodbye(
    listener: TcpListener,
    telemetry: Arc<Telemetry>,
    readiness: Arc<Readiness>,
    stop: impl Future<Output = ()> + Send + 'static,
    goodbye: Duration,
) {
    let pages = Pages { telemetry, readiness, scrapes: Arc::new(Semaphore::new(SCRAPES_MAX)) };
    let (stopping, stopped) = tokio::sync::oneshot::channel::<()>();
    let stop = async move {
        stop.await;
        drop(stopping);
    };
    let door = axum::serve(Doorman::new(listener), routes(pages)).with_graceful_shutdown(stop);
    let overdue = async move {
        let _ = stopped.await;
        task::sleep(goodbye).await;
    };
    tokio::select! {
        served = door.into_future() => {
            if let Err(error) = served {
                tracing::error!(%error, "the HTTP listener ended");
            }
        }
        () = overdue => {}
    }
}

fn routes(pages: Pages) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(|| async { text(StatusCode::OK, "ok\n") }))
        .route("/readyz", get(readyz))
        .fallback(|| async { text(StatusCode::NOT_FOUND, "not here; try /metrics, /livez or /readyz\n") })
        .with_state(pages)
}

async fn metrics(State(pages): State<Pages>) -> Response {
    let Ok(_turn) = pages.scrapes.try_acquire() else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "other scrapes are under way\n");
    };
    let page = task::blocking(move || pages.telemetry.render()).await;
    ([(header::CONTENT_TYPE, METRICS_TYPE)], page).into_response()
}

async fn readyz(State(pages): State<Pages>) -> Response {
    match pages.readiness.missing() {
        None => text(StatusCode::OK, "ready\n"),
        Some(reason) => text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
    }
}

fn text(status: StatusCode, body: impl Into<String>) -> Response {
    (status, [(header::CONTENT_TYPE, TEXT_TYPE)], body.into()).into_response()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::oneshot;

    use super::*;
    use crate::host::net::TcpStream;

    struct Door {
        address: SocketAddr,
        telemetry: Arc<Telemetry>,
        readiness: Arc<Readiness>,
        stop: oneshot::Sender<()>,
        served: tokio::task::JoinHandle<()>,
    }

    async fn open() -> Door {
        open_with_goodbye(GOODBYE).await
    }

    async fn open_with_goodbye(goodbye: Duration) -> Door {
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (telemetry, readiness) = (Telemetry::new(0), Arc::new(Readiness::new("recovering logs")));
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async move {
            let _ = stopped.await;
        };
        let serving = serve_with_goodbye(listener, telemetry.clone(), readiness.clone(), stopped, goodbye);
        let served = tokio::spawn(serving);
        Door { address, telemetry, readiness, stop, served }
    }

    async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn get_page(address: SocketAddr, path: &str) -> String {
        ask(address, &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).await
    }

    #[tokio::test]
    async fn a_port_in_use_is_told_what_to_set() {
        let taken = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let error = bind(taken.local_addr().unwrap()).await.unwrap_err().to_string();
        assert!(error.contains("another broker may be running on it; set http.listener"), "{error}");
    }

    #[tokio::test]
    async fn metrics_are_prometheus_text() {
        let door = open().await;
        let orders = door.telemetry.topic("orders");
        orders.produced(5, 50);
        let answer = get_page(door.address, "/metrics").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
        assert!(
            answer.contains("\nkafka_server_brokertopicmetrics_messagesin_total{topic=\"orders\"} 5\n"),
            "{answer}"
        );
    }

    #[tokio::test]
    async fn readiness_says_what_is_missing_and_liveness_does_not_care() {
        let door = open().await;
        let answer = get_page(door.address, "/readyz").await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.ends_with("not ready: recovering logs\n"), "{answer}");
        assert!(get_page(door.address, "/livez").await.starts_with("HTTP/1.1 200"));
        door.readiness.ready();
        assert!(get_page(door.address, "/readyz").await.starts_with("HTTP/1.1 200"));
        door.readiness.not_ready("shutting down");
        assert!(get_page(door.address, "/readyz").await.starts_with("HTTP/1.1 503"));
    }

    #[tokio::test]
    async fn other_paths_methods_and_garbage_are_refused() {
        let door = open().await;
        assert!(get_page(door.address, "/").await.starts_with("HTTP/1.1 404"));
        let post = "POST /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        assert!(ask(door.address, post).await.starts_with("HTTP/1.1 405"));
        assert!(ask(door.address, "\0\0\0\x11\0\x12 not http\r\n\r\n").await.starts_with("HTTP/1.1 400"));
        assert!(get_page(door.address, "/livez").await.starts_with("HTTP/1.1 200"), "the next one works");
    }

    #[tokio::test]
    async fn stopping_closes_idle_connections_and_returns() {
        let door = open().await;
        let mut idle = TcpStream::connect(door.address).await.unwrap();
        idle.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut first = [0; 12];
        idle.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        door.stop.send(()).unwrap();
        door.served.await.unwrap();
        let mut rest = Vec::new();
        idle.read_to_end(&mut rest).await.unwrap();
    }

    #[tokio::test]
    async fn a_half_sent_request_does_not_hold_up_the_stop() {
        let door = open_with_goodbye(Duration::from_millis(5)).await;
        let mut stuck = TcpStream::connect(door.address).await.unwrap();
        stuck.write_all(b"GET /metr").await.unwrap();
        door.stop.send(()).unwrap();
        door.served.await.unwrap();
    }
}
