//! The web server of the page. All paths begin with the token; requests of other sites' pages are
//! refused.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use weir_call::{ReachedAt, TokenListener};

use super::bodies::Bodies;
use super::lab::{Lab, Start};

/// The page as built by `make web`; empty if it was not built before this crate.
const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/serve.html"));
const NO_PAGE: &str = "this weir was built without its page: run `make web`, then build again";
/// Time after which a connection is closed, read or not. A report of a thousand records takes
/// seconds.
const LIFETIME: Duration = Duration::from_secs(60);
/// Browsers leave this port out of `Host` and `Origin`.
const HTTP_PORT: u16 = 80;
/// The page is one file that talks to its own server alone, and no page may frame it.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action \
                      'none'; frame-ancestors 'none'";

/// The server. It ends when this is dropped.
pub struct Server {
    shutdown: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves the lab to those who know the token.
    pub fn start(listener: std::net::TcpListener, token: &str, lab: Arc<Lab>) -> io::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _guard = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let listener = TokenListener::new(listener, token).with_lifetime(LIFETIME);
        let router = router(token, address, lab);
        let (shutdown, stopped) = oneshot::channel();
        let serve = std::thread::Builder::new().name("weir-serve".into()).spawn(move || {
            runtime.block_on(async move {
                let service = router.into_make_service_with_connect_info::<ReachedAt>();
                let serving = axum::serve(listener, service);
                tokio::spawn(async move { serving.await });
                // An error means that the server was dropped: stop, too.
                let _ = stopped.await;
            });
            // A report that is still being made is not waited for.
            runtime.shutdown_background();
        });
        Ok(Self { shutdown: Some(shutdown), thread: Some(serve?) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.shutdown.take());
        if let Some(thread) = self.thread.take() {
            // The thread has printed its panic. A second panic in a drop would abort.
            let _ = thread.join();
        }
    }
}

fn router(token: &str, address: SocketAddr, lab: Arc<Lab>) -> Router {
    let routes = Router::new()
        .route("/about", get(about))
        .route("/scenario/{id}", get(scenario))
        .route("/check", post(check))
        .route("/start", post(start))
        .route("/change", post(change))
        .route("/stop", post(stop))
        .route("/news/{job}/{status}/{stats}", get(news))
        .route("/command", get(command))
        .route("/curves", get(curves))
        .route("/records", get(records))
        .route("/report/{records}", get(report))
        .route("/metrics", get(metrics));
    Router::new()
        .route(&format!("/{token}/"), get(page))
        .nest(&format!("/{token}"), routes)
        // Bodies have their limit there.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state((address, Bodies::default()), guard))
        .with_state(lab)
}

/// Refuses what does not come from the page itself, and sets the headers of every answer.
async fn guard(
    State((address, bodies)): State<(SocketAddr, Bodies)>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match refusal(request.method(), request.headers(), address) {
        Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
        None => match bodies.whole(request).await {
            Ok(request) => next.run(request).await,
            Err(refused) => refused.into_response(),
        },
    };
    let headers = response.headers_mut();
    let set = [
        (header::CACHE_CONTROL, "no-store"),
        // The address contains the token.
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::CONNECTION, "close"),
    ];
    for (name, value) in set {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Why a request is refused: another site's page sent it, or a name of another site leads here.
fn refusal(method: &Method, headers: &HeaderMap, address: SocketAddr) -> Option<&'static str> {
    let Some(host) = text(headers, "host").filter(|host| is_own(host, address)) else {
        return Some("wrong Host");
    };
    // Browsers send it with each POST and with each request of another site's page that is to be
    // read.
    if text(headers, "origin").is_some_and(|origin| origin != format!("http://{host}")) {
        return Some("wrong Origin");
    }
    let site = text(headers, "sec-fetch-site");
    if site.is_some_and(|site| !["same-origin", "none"].contains(&site)) {
        return Some("request of another site");
    }
    // A form of another site cannot send this type.
    let is_json = text(headers, "content-type") == Some("application/json");
    (method != Method::GET && !is_json).then_some("not JSON")
}

/// The text of a header; empty if it is no ASCII.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

/// Whether a Host header names this server by its address. Any other name could be of another site,
/// which has made it lead here.
fn is_own(host: &str, address: SocketAddr) -> bool {
    // An IPv6 address has colons of its own, and ends with a bracket.
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
        _ => (host, Some(HTTP_PORT)),
    };
    let ip: Option<IpAddr> = name.trim_matches(['[', ']']).parse().ok();
    let is_local =
        name == "localhost" && (address.ip().is_loopback() || address.ip().is_unspecified());
    let is_address = ip.is_some_and(|ip| address.ip().is_unspecified() || ip == address.ip());
    port == Some(address.port()) && (is_local || is_address)
}

/// An error as the page shows it, in one line.
struct Refused(anyhow::Error);

impl<E: Into<anyhow::Error>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let error = json!({ "error": format!("{:#}", self.0) });
        (StatusCode::BAD_REQUEST, Json(error)).into_response()
    }
}

type Answer<T = Json<Value>> = Result<T, Refused>;
type OfLab = State<Arc<Lab>>;

/// Runs something slow beside the server's own thread.
async fn slowly<T: Send + 'static>(
    lab: Arc<Lab>,
    work: impl FnOnce(&Lab) -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    spawn_blocking(move || work(&lab)).await?
}

async fn page() -> Response {
    if PAGE.is_empty() {
        return (StatusCode::NOT_FOUND, NO_PAGE).into_response();
    }
    axum::response::Html(PAGE).into_response()
}

async fn about(State(lab): OfLab) -> Answer {
    Ok(Json(slowly(lab, |lab| Ok(lab.about().clone())).await?))
}

async fn scenario(State(lab): OfLab, Path(id): Path<String>) -> Answer {
    Ok(Json(json!({ "text": lab.text(&id)? })))
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

async fn check(State(lab): OfLab, Json(Text { text }): Json<Text>) -> Answer {
    Ok(Json(slowly(lab, move |lab| Ok(lab.check(&text))).await?))
}

async fn start(State(lab): OfLab, body: Bytes) -> Answer {
    let start: Start = serde_json::from_slice(&body)?;
    Ok(Json(json!({ "number": slowly(lab, move |lab| lab.start(&start)).await? })))
}

#[derive(Deserialize)]
struct Change {
    line: String,
}

async fn change(State(lab): OfLab, Json(Change { line }): Json<Change>) -> Answer {
    slowly(lab, move |lab| lab.change(&line)).await?;
    Ok(Json(json!({})))
}

async fn stop(State(lab): OfLab) -> Answer {
    slowly(lab, Lab::stop).await?;
    Ok(Json(json!({})))
}

/// The path has the job that the page shows, and how many statuses and intervals it has.
async fn news(State(lab): OfLab, Path(known): Path<(u64, usize, usize)>) -> Json<Value> {
    let (job, statuses, stats) = known;
    Json(lab.news(job, statuses, stats))
}

/// What repeats the current run in a shell.
async fn command(State(lab): OfLab) -> Answer {
    Ok(Json(json!({ "text": lab.repeated()? })))
}

async fn curves(State(lab): OfLab) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], lab.curves().to_string()).into_response()
}

async fn records(State(lab): OfLab) -> Answer {
    Ok(Json(slowly(lab, Lab::records).await?))
}

/// The names of the records are separated by line feeds.
async fn report(State(lab): OfLab, Path(records): Path<String>) -> Answer<Response> {
    let names: Vec<String> = records.lines().map(String::from).collect();
    let page = slowly(lab, move |lab| lab.report(&names)).await?;
    Ok(axum::response::Html(page).into_response())
}

async fn metrics(State(lab): OfLab) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], lab.metrics()).into_response()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |&(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn requests_of_pages_of_other_sites_are_refused() {
        let address: SocketAddr = "127.0.0.1:8099".parse().unwrap();
        let judged = |method, pairs: &[_]| refusal(&method, &headers(pairs), address);
        let host = ("host", "127.0.0.1:8099");
        let json = ("content-type", "application/json");
        let own = ("origin", "http://127.0.0.1:8099");
        assert_eq!(judged(Method::GET, &[host]), None);
        assert_eq!(judged(Method::GET, &[("host", "localhost:8099")]), None);
        assert_eq!(judged(Method::POST, &[host, json, own]), None);
        for (wrong, why) in [
            ("evil.example:8099", "wrong Host"),
            ("127.0.0.1:80", "wrong Host"),
            ("127.0.0.2:8099", "wrong Host"),
            ("127.0.0.1", "wrong Host"),
        ] {
            assert_eq!(judged(Method::GET, &[("host", wrong)]), Some(why), "{wrong}");
        }
        assert_eq!(judged(Method::GET, &[]), Some("wrong Host"));
        for origin in
            ["http://evil.example", "null", "http://127.0.0.1:80", "https://127.0.0.1:8099"]
        {
            let foreign = [host, json, ("origin", origin)];
            assert_eq!(judged(Method::POST, &foreign), Some("wrong Origin"), "{origin}");
        }
        let at_80 = |host: &str| is_own(host, "127.0.0.1:80".parse().unwrap());
        assert!(at_80("127.0.0.1") && at_80("127.0.0.1:80") && !at_80("127.0.0.1:8099"));
        let six = |host: &str, own: &str| is_own(host, own.parse().unwrap());
        assert!(six("[::1]", "[::1]:80") && six("[::1]:8099", "[::1]:8099"));
        assert!(!six("[::1]", "[::1]:8099") && !six("[::2]:8099", "[::1]:8099"));
        let embedded = [host, ("sec-fetch-site", "cross-site")];
        assert_eq!(judged(Method::GET, &embedded), Some("request of another site"));
        assert_eq!(judged(Method::POST, &[host, ("content-type", "text/plain")]), Some("not JSON"));
    }

    struct Served {
        address: SocketAddr,
        lab: Arc<Lab>,
        _server: Server,
        _out: tempfile::TempDir,
    }

    impl Drop for Served {
        fn drop(&mut self) {
            self.lab.close();
        }
    }

    fn served() -> Served {
        let out = tempfile::tempdir().unwrap();
        let lab = Arc::new(Lab::new(out.path().canonicalize().unwrap(), &[]).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::start(listener, "0123456789abcdef", lab.clone()).unwrap();
        Served { address, lab, _server: server, _out: out }
    }

    impl Served {
        fn ask(&self, head: &str, body: &str) -> String {
            let mut stream = TcpStream::connect(self.address).unwrap();
            let length = body.len();
            write!(
                stream,
                "{head}\r\nHost: {}\r\nContent-Length: {length}\r\n\r\n{body}",
                self.address
            )
            .unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        }
    }

    #[test]
    fn an_answer_needs_the_token_and_sets_no_cookie() {
        let served = served();
        let answer = served.ask("GET /0123456789abcdef/metrics HTTP/1.1", "");
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains("weir_run_active 0"),
            "{answer}"
        );
        let lower = answer.to_lowercase();
        assert!(
            !lower.contains("set-cookie") && !lower.contains("access-control-allow"),
            "{answer}"
        );
        for path in ["/", "/metrics", "/0123456789abcdee/metrics", "/0123456789abcdef"] {
            let answer = served.ask(&format!("GET {path} HTTP/1.1"), "");
            assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
        }
    }

    #[test]
    fn a_bad_request_gets_one_line() {
        let served = served();
        let post = "POST /0123456789abcdef/start HTTP/1.1\r\nContent-Type: application/json";
        for body in
            ["", "{", "[]", r#"{"kind":"run","scenario":"demo/none"}"#, r#"{"kind":"run","x":1}"#]
        {
            let answer = served.ask(post, body);
            assert!(
                answer.starts_with("HTTP/1.1 400") && answer.contains("\"error\":"),
                "{answer}"
            );
        }
        let answer = served.ask("POST /0123456789abcdef/stop HTTP/1.1", "");
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }

    #[test]
    fn clients_that_do_not_read_do_not_keep_others_from_it() {
        let served = served();
        // Fewer than there are places, but each with an answer that is not read.
        let mut silent: Vec<TcpStream> = Vec::new();
        for _ in 0..100 {
            let mut stream = TcpStream::connect(served.address).unwrap();
            write!(
                stream,
                "GET /0123456789abcdef/about HTTP/1.1\r\nHost: {}\r\n\r\n",
                served.address
            )
            .unwrap();
            silent.push(stream);
        }
        let answer = served.ask("GET /0123456789abcdef/news/0/0/0 HTTP/1.1", "");
        assert!(answer.contains("\"number\":0"), "{answer}");
    }

    #[test]
    fn bodies_that_never_come_do_not_keep_others_from_it() {
        let served = served();
        let mut silent: Vec<TcpStream> = Vec::new();
        for _ in 0..300 {
            let mut stream = TcpStream::connect(served.address).unwrap();
            write!(
                stream,
                "POST /0123456789abcdef/check HTTP/1.1\r\nHost: {}\r\n\
                 Content-Type: application/json\r\nContent-Length: 10\r\n\r\n",
                served.address
            )
            .unwrap();
            silent.push(stream);
        }
        let answer = served.ask("GET /0123456789abcdef/news/0/0/0 HTTP/1.1", "");
        assert!(answer.contains("\"number\":0"), "{answer}");
        let post = "POST /0123456789abcdef/check HTTP/1.1\r\nContent-Type: application/json";
        let answer = served.ask(post, r#"{"text":""}"#);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        // Places became free because others came, not because time went by: some still wait.
        let (mut waiting, mut made_room) = (0, 0);
        for mut stream in silent {
            stream.set_nonblocking(true).unwrap();
            let mut answer = [0; 1000];
            match stream.read(&mut answer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => waiting += 1,
                Ok(length) => {
                    let answer = String::from_utf8_lossy(&answer[..length]);
                    made_room += usize::from(answer.contains("others wait, too"));
                }
                Err(_) => {}
            }
        }
        assert!(made_room > 0, "no request ended because others came");
        assert!(waiting > 0, "none waits");
    }
}
