//! The IMS with its real components: Kamailio, rtpengine, our HSS and PCRF, and our user agents.

mod attacks;
mod noted;
mod sockets;
mod tls;

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use noted::{RUN, bearers, has_passed, is_registered, told_link};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tungstenite::WebSocket;

const PROGRAM: &str = env!("CARGO_BIN_EXE_weir-ims");

fn ims(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

/// Runs a command that must succeed.
fn succeeds(arguments: &[&str]) -> String {
    let output = ims(arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail with exit code 2 and one line.
fn fails(arguments: &[&str]) -> String {
    let output = ims(arguments);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

/// Takes the IMS down when a test ends, in whatever way.
struct Running;

impl Running {
    /// Starts the IMS, or says why it cannot run here.
    fn start(arguments: &[&str]) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: an IMS needs root");
            return None;
        }
        let output = ims(&[&["up"], arguments].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        for reason in ["missing Debian packages", "is running already", "install kamailio"] {
            if error.contains(reason) {
                println!("skipped: {}", error.trim());
                return None;
            }
        }
        assert!(output.status.success(), "{error}");
        Some(Self)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            print_complaints();
        }
        let output = ims(&["down"]);
        if !thread::panicking() {
            assert!(output.status.success());
            let namespaces = Command::new("ip").args(["netns", "list"]).output().unwrap().stdout;
            assert!(!String::from_utf8(namespaces).unwrap().contains("weir-ims-"));
        }
    }
}

/// Prints what the parts of the IMS complained about, which the next start removes.
fn print_complaints() {
    for part in ["pcscf", "epcscf", "icscf", "scscf", "hss", "pcrf", "waf", "facilitator"] {
        let log = fs::read_to_string(format!("{RUN}/{part}.log")).unwrap_or_default();
        for line in log.lines().filter(|line| line.contains("ERROR") || line.contains("WARNING")) {
            println!("{part}: {line}");
        }
    }
}

/// Runs a function in the network of a terminal.
fn in_terminal<R: Send>(user: &str, function: impl FnOnce() -> R + Send) -> R {
    let file = fs::File::open(format!("/run/netns/weir-ims-{user}")).unwrap();
    thread::scope(|scope| {
        let entered = scope.spawn(move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            function()
        });
        entered.join().unwrap()
    })
}

/// Sends a datagram from alice's terminal and returns the first line of the final response.
fn asked(to: &str, request: &str) -> String {
    in_terminal("alice", || {
        let socket = UdpSocket::bind("10.46.1.2:5060").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.send_to(request.as_bytes(), to).unwrap();
        let mut bytes = [0; 4096];
        loop {
            let count = socket.recv(&mut bytes).unwrap();
            let text = String::from_utf8_lossy(&bytes[..count]);
            let first = text.lines().next().unwrap().to_owned();
            if !first.starts_with("SIP/2.0 1") {
                return first;
            }
        }
    })
}

/// A request of alice's terminal with these additional headers.
fn request(method: &str, uri: &str, headers: &str) -> String {
    format!(
        "{method} {uri} SIP/2.0\r\n\
         Via: SIP/2.0/UDP 10.46.1.2:5060;branch=z9hG4bK{method}1;rport\r\n\
         Max-Forwards: 70\r\nFrom: <sip:alice@ims.test>;tag=1\r\nTo: <sip:alice@ims.test>\r\n\
         Call-ID: {method}{}\r\nCSeq: 1 {method}\r\nContact: <sip:alice@10.46.1.2:5060>\r\n\
         {headers}Content-Length: 0\r\n\r\n",
        headers.len()
    )
}

#[test]
fn users_register_and_call_through_kamailio() {
    let Some(_running) = Running::start(&[]) else { return };
    // Digest by datagrams and by a WebSocket, and AKA.
    succeeds(&["register", "alice"]);
    succeeds(&["register", "alice", "--via", "ws"]);
    // The S-CSCF registers carol at the application server, once for each change.
    succeeds(&["register", "carol"]);
    // The registrar tells of the registration (reg-event) and of its expiry, for the whole set.
    let told = succeeds(&["register", "bob", "--expires", "2", "--watch", "8"]);
    for identity in ["sip:bob@ims.test", "tel:+4640100002", "sip:bobby@ims.test"] {
        assert!(told.contains(&format!("{identity} active registered")), "{told}");
        assert!(told.contains(&format!("{identity} terminated expired")), "{told}");
    }
    // The P-CSCF hears of it too (TS 24.229, section 5.2.3).
    let log = fs::read_to_string(format!("{RUN}/pcscf.log")).unwrap();
    for state in ["active", "terminated"] {
        let line = format!("the registrar tells of sip:bob@ims.test: {state}");
        assert!(log.contains(&line), "no {state} at the P-CSCF");
    }
    let passed = fs::read_to_string(format!("{RUN}/sip.jsonl")).unwrap();
    let third_party: Vec<&str> =
        passed.lines().filter(|line| line.contains("REGISTER sip:as.ims.test")).collect();
    let [register, deregister] = third_party[..] else { panic!("{third_party:?}") };
    assert!(register.contains("To: <sip:carol@ims.test>"), "{register}");
    assert!(deregister.contains("Expires: 0"), "no deregistration: {deregister}");
    // 1,000 a minute.
    let many = succeeds(&["register", "alice", "--times", "60", "--via", "ws"]);
    let line = many.lines().find(|line| line.ends_with(" a minute")).unwrap();
    let rate = line.split(' ').rev().nth(2).unwrap();
    assert!(rate.parse::<u32>().unwrap() > 1000, "{many}");
    let error = fails(&["register", "alice", "--password", "wrong"]);
    assert!(error.contains("alice is not registered: status 403"), "{error}");
    let error = fails(&["register", "eve"]);
    assert!(error.contains("the subscribers are alice, bob, carol, dave"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("call");
    let out = out.to_str().unwrap();
    let phases = succeeds(&["call", "alice", "bob", "--out", out]);
    assert!(phases.contains("INVITE to 183"), "{phases}");
    let rules = succeeds(&["check", out]);
    assert!(rules.ends_with("rules hold, 0 are broken\n"), "{rules}");
    let bearers = fs::read_to_string(Path::new(out).join("messages.jsonl")).unwrap();
    assert!(bearers.contains("video QCI 2"), "no bearer of the video");

    // Her calls go through it, to their end.
    let out = folder.path().join("as");
    let out = out.to_str().unwrap();
    succeeds(&["call", "carol", "bob", "--out", out]);
    succeeds(&["check", out]);
    let messages = fs::read_to_string(Path::new(out).join("messages.jsonl")).unwrap();
    for (from, name) in [("scscf", "INVITE"), ("as", "200 INVITE"), ("scscf", "BYE")] {
        let to = if from == "as" { "scscf" } else { "as" };
        let start =
            format!("\"from\":\"{from}\",\"to\":\"{to}\",\"protocol\":\"SIP\",\"name\":\"{name}\"");
        assert!(messages.contains(&start), "no {name} from {from}");
    }

    // She is called by an identity that only a wildcard of her set covers, and bob by his third
    // one.
    let out = folder.path().join("wildcard");
    let out = out.to_str().unwrap();
    succeeds(&["call", "alice", "carol", "--to", "sip:office7@ims.test", "--out", out]);
    let messages = fs::read_to_string(Path::new(out).join("messages.jsonl")).unwrap();
    assert!(messages.contains("P-Called-Party-ID: <sip:office7@ims.test>"), "{messages}");
    succeeds(&["call", "alice", "bob", "--to", "sip:bobby@ims.test"]);

    for end in ["callee", "refused", "cancelled", "aborted"] {
        succeeds(&["call", "alice", "bob", "--end", end]);
    }
    let out = folder.path().join("ws");
    let out = out.to_str().unwrap();
    succeeds(&["call", "alice", "bob", "--via", "ws", "--out", out]);
    succeeds(&["check", out]);
}

// [TS 33.203 §U.1]
#[test]
fn strangers_and_forged_requests_are_refused() {
    let Some(_running) = Running::start(&[]) else { return };
    let route = "Route: <sip:orig@scscf.ims.test:5060;lr>\r\n";
    let invite = request("INVITE", "sip:bob@ims.test", route);
    assert_eq!(asked("10.46.0.4:5060", &invite), "SIP/2.0 403 No Peer");
    let register = request("REGISTER", "sip:ims.test", "");
    assert_eq!(asked("10.46.0.3:5060", &register), "SIP/2.0 403 No Peer");
    // Who is not registered cannot call, not even with the route of the terminating side.
    let route = "Route: <sip:term@pcscf.ims.test:5060;lr>\r\n";
    let invite = request("INVITE", "sip:bob@10.46.2.2", route);
    assert_eq!(asked("10.46.0.1:5060", &invite), "SIP/2.0 403 Register First");
    // Only the network may say that somebody is authenticated.
    let forged = "Authorization: Digest username=\"alice@ims.test\",realm=\"ims.test\",nonce=\"\",\
        uri=\"sip:ims.test\",response=\"\",integrity-protected=\"auth-done\"\r\n";
    let register = request("REGISTER", "sip:ims.test", forged);
    assert!(asked("10.46.0.1:5060", &register).starts_with("SIP/2.0 401 "));
}

/// Opens a WebSocket of SIP from alice's terminal.
fn web_socket() -> WebSocket<TcpStream> {
    let stream = in_terminal("alice", || TcpStream::connect("10.46.0.2:8080").unwrap());
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    sip_over(stream)
}

/// Opens a WebSocket of SIP on this connection.
fn sip_over<S: Read + Write>(stream: S) -> WebSocket<S> {
    let mut request =
        tungstenite::client::IntoClientRequest::into_client_request("ws://10.46.0.2:8080/")
            .unwrap();
    request.headers_mut().insert("Sec-WebSocket-Protocol", "sip".parse().unwrap());
    let Ok((socket, _)) = tungstenite::client(request, stream) else { panic!("no WebSocket") };
    socket
}

// [RFC7118 §4]
#[test]
fn the_web_socket_survives_any_text_and_refuses_messages_of_the_network() {
    let Some(_running) = Running::start(&[]) else { return };
    let whole = request("REGISTER", "sip:ims.test", "").replace("SIP/2.0/UDP", "SIP/2.0/WS");
    let long = format!("REGISTER sip:ims.test SIP/2.0\r\nVia: {}\r\n\r\n", "a".repeat(60_000));
    let malformed = [
        "",
        "\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        &whole[..40],
        &whole.replace("CSeq: 1 REGISTER", "CSeq: x"),
        &whole.replace("Content-Length: 0", "Content-Length: -1"),
        &whole.replace("Contact", "\0Contact"),
        &long,
    ];
    for text in malformed {
        let mut socket = web_socket();
        let _ = socket.send(tungstenite::Message::text(text));
        let _ = socket.send(tungstenite::Message::binary(text.as_bytes().to_vec()));
        let _ = socket.close(None);
    }
    // The same over TLS: bytes that are no ClientHello.
    in_terminal("alice", || {
        let mut stream = TcpStream::connect("10.46.0.2:8443").unwrap();
        let _ = stream.write_all(whole.as_bytes());
    });
    // Only the network may say that somebody is authenticated, and nobody else lives by what was
    // sent.
    let forged = "Authorization: Digest username=\"alice@ims.test\",realm=\"ims.test\",nonce=\"\",\
        uri=\"sip:ims.test\",response=\"\",integrity-protected=\"auth-done\"\r\n";
    let register = request("REGISTER", "sip:ims.test", forged);
    let register =
        register.replace("SIP/2.0/UDP", "SIP/2.0/WS").replace("5060>", "5060;transport=ws>");
    let mut socket = web_socket();
    socket.send(tungstenite::Message::text(register)).unwrap();
    let answer = loop {
        let text = socket.read().unwrap().into_text().unwrap();
        if !text.starts_with("SIP/2.0 1") {
            break text;
        }
    };
    assert!(answer.starts_with("SIP/2.0 401 "), "{answer}");
    drop(socket);
    succeeds(&["register", "alice", "--via", "ws"]);
    // The application function of the eP-CSCF hears the core only.
    let answer = in_terminal("alice", || {
        let mut stream = TcpStream::connect("10.46.0.8:8081").unwrap();
        let _ = stream.write_all(b"POST /end/orig/-/1 HTTP/1.1\r\n\r\n");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    });
    assert_eq!(answer, b"");
}

#[test]
fn a_call_outlives_each_part_and_goes_on_without_a_pcrf() {
    let Some(_running) = Running::start(&[]) else { return };
    // BYE and deregistration go through the new process of the part.
    for part in ["hss", "icscf", "scscf", "pcscf", "pcrf"] {
        succeeds(&["call", "alice", "bob", "--restart", part]);
        if part == "pcscf" {
            // It has lost its sessions of Rx; the bearers go all the same.
            assert_eq!(bearers("install"), bearers("remove"));
        }
    }
    // The terminals open their WebSockets again. An UPDATE that holds the callee, and then the BYE
    // of either side, find the other one on its new connection.
    let folder = tempfile::tempdir().unwrap();
    for end in ["caller", "callee"] {
        let both = ["--via", "ws", "--callee-via", "ws", "--restart", "epcscf", "--end", end];
        let out = folder.path().join(end);
        let out = out.to_str().unwrap();
        succeeds(&[&["call", "alice", "bob", "--hold", "--out", out], &both[..]].concat());
        let rules = succeeds(&["check", out]);
        assert!(rules.contains("holds  RFC 3264 6.1"), "nobody was held: {rules}");
    }
    succeeds(&["restart", "pcrf", "--stop"]);
    let log = || fs::read_to_string(format!("{RUN}/pcscf.log")).unwrap();
    let before = log().matches("no bearer for call").count();
    succeeds(&["call", "alice", "bob"]);
    assert!(log().matches("no bearer for call").count() > before, "no line about the bearer");
}

#[test]
fn without_capacity_the_policy_decides_about_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let media = "[media.audio]\nqci = 1\narp = 2\nmost_kbps = 128\n\
        [media.video]\nqci = 2\narp = 4\nmost_kbps = 4000\n";
    let policy = folder.path().join("policy.toml");
    for (without_bearer, is_call) in [("continue", true), ("refuse", false)] {
        let head = format!("capacity_kbps = 1000\nwithout_bearer = '{without_bearer}'\n");
        fs::write(&policy, head + media).unwrap();
        let Some(_running) = Running::start(&["--policy", policy.to_str().unwrap()]) else {
            return;
        };
        let out = folder.path().join(without_bearer);
        let output = ims(&["call", "alice", "bob", "--out", out.to_str().unwrap()]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), is_call, "{without_bearer}: {error}");
        let log = fs::read_to_string(format!("{RUN}/pcscf.log")).unwrap();
        assert!(log.contains("no bearer for call"), "{without_bearer}");
        if !is_call {
            assert!(error.contains("the call failed with status 488"), "{error}");
            let messages = fs::read_to_string(out.join("messages.jsonl")).unwrap();
            assert!(messages.contains("\"CANCEL\""), "no CANCEL");
        }
    }
}

/// The folder of the web servers, or why they cannot run here.
fn web() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("ims/web").canonicalize().unwrap();
    for (path, reason) in [
        (folder.join("node_modules/playwright-core"), "make ims-web"),
        (PathBuf::from("/usr/bin/chromium"), "chromium"),
    ] {
        if !path.exists() {
            println!("skipped: a browser's registration needs {reason}");
            return None;
        }
    }
    Some(folder)
}

/// A token of the authorization server for this user, asked for as the web server does.
fn token(private: &str, public: &str) -> String {
    let config = fs::read_to_string(format!("{RUN}/web.json")).unwrap();
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    let script = "const [, secret, impi, impu] = process.argv;\
        const body = new URLSearchParams({ grant_type: 'client_credentials', impi, impu });\
        const headers = { authorization: `Basic ${btoa(`wwsf:${secret}`)}` };\
        const url = 'https://waf.ims.test:8445/token';\
        const answer = await fetch(url, { method: 'POST', body, headers });\
        console.log((await answer.json()).access_token);";
    let output = Command::new("ip")
        .args(["netns", "exec", "weir-ims-core", "node", "--input-type=module", "-e", script])
        .args([config["secrets"]["wwsf"].as_str().unwrap(), private, public])
        .env("NODE_EXTRA_CA_CERTS", format!("{RUN}/waf.crt"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Counts transactions: a request with an old branch would be a repetition.
static TRANSACTIONS: AtomicU32 = AtomicU32::new(0);

/// Registers alice with this token over a secure WebSocket. Returns the first line of the final
/// response.
fn registered_with(token: &str) -> String {
    registered_over(&mut sip_over(tls::Tls::open()), token)
}

/// The same over this WebSocket.
fn registered_over(socket: &mut WebSocket<impl Read + Write>, token: &str) -> String {
    let header = format!("Supported: path\r\nAuthorization: Bearer access_token=\"{token}\"\r\n");
    let register = request("REGISTER", "sip:ims.test", &header)
        .replace("SIP/2.0/UDP", "SIP/2.0/WS")
        .replace("5060>", "5060;transport=ws>")
        .replace(
            "z9hG4bKREGISTER1",
            &format!("z9hG4bK{}", TRANSACTIONS.fetch_add(1, Ordering::Relaxed)),
        );
    socket.send(tungstenite::Message::text(register)).unwrap();
    loop {
        let text = socket.read().unwrap().into_text().unwrap();
        if !text.starts_with("SIP/2.0 1") {
            return text.lines().next().unwrap().to_owned();
        }
    }
}

/// Lets Chromium do what a user does, in a terminal, and returns what it says of it.
fn driven(terminal: &str, folder: &Path, arguments: &[&str]) -> serde_json::Value {
    let output = Command::new("ip")
        .args(["netns", "exec", &format!("weir-ims-{terminal}"), "node", "drive.mjs"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).unwrap()
}

// [RFC8898 §2, RFC7662 §2.2]
#[test]
fn browsers_log_in_and_talk_with_a_plain_user_agent() {
    let Some(folder) = web() else { return };
    let arguments =
        ["--web", folder.to_str().unwrap(), "--token-seconds", "25", "--facilitator-bearer"];
    let Some(_running) = Running::start(&arguments) else { return };
    let started = Instant::now();
    let old = token("alice@ims.test", "sip:alice@ims.test");
    assert_eq!(registered_with(&old), "SIP/2.0 200 OK");
    let foreign = token("bob@ims.test", "sip:bob@ims.test");
    assert_eq!(registered_with(&foreign), "SIP/2.0 403 Not Your Token");
    assert_eq!(registered_with("forged"), "SIP/2.0 403 Not Your Token");
    assert_eq!(registered_with("a&token=b"), "SIP/2.0 400 Bad Token");
    let plain = registered_over(&mut web_socket(), &old);
    assert_eq!(plain, "SIP/2.0 403 Token Without TLS");

    // Registration 2: the browser calls.
    let bob = ["answer", "bob", "--patience", "40"];
    let bob = Command::new(PROGRAM).args(bob).stdout(Stdio::piped()).spawn().unwrap();
    let alice = ["--name", "alice", "--password", "alice-secret"];
    let call = ["--call", "sip:bob@ims.test", "--seconds", "2"];
    let alice = driven("alice", &folder, &[&alice[..], &call[..]].concat());
    assert_eq!(alice["remoteAddress"], "10.46.0.7", "media do not go through the gateway");
    assert!(alice["framesDecoded"].as_u64().unwrap() > 0, "{alice}");
    assert!(alice["audioPackets"].as_u64().unwrap() > 50, "{alice}");
    // The registrar tells it of its registration.
    assert!(alice["events"].to_string().contains("\"registrations\""), "{alice}");
    assert!(bob.wait_with_output().unwrap().status.success());

    // Registration 3: the browser has an identity of the pool, and is called.
    let visitor = thread::spawn({
        let folder = folder.clone();
        move || driven("alice", &folder, &["--visit", "--wait-for-call", "--until-ended"])
    });
    while !is_registered("visitor1") && !visitor.is_finished() {
        thread::sleep(Duration::from_millis(100));
    }
    succeeds(&["dial", "bob", "visitor1", "--hang-up-after", "8"]);
    let visitor = visitor.join().unwrap();
    assert!(visitor["framesDecoded"].as_u64().unwrap() > 0, "{visitor}");
    assert_eq!(visitor["remoteAddress"], "10.46.0.13", "not through the gateway of the eP-CSCF");

    video_follows_the_telephone_call();
    thread::sleep(Duration::from_secs(26).saturating_sub(started.elapsed()));
    assert_eq!(registered_with(&old), "SIP/2.0 403 Not Your Token", "the token has expired");
}

/// Plain user agents call, and open the links of the facilitator in browsers (delft, 4.1 and 7.2).
fn video_follows_the_telephone_call() {
    let links = "node ims/web/drive.mjs --video";
    let answer = ["answer", "dave", "--patience", "40", "--open-links-with", links];
    let dave = thread::spawn(move || succeeds(&answer));
    while !is_registered("dave") && !dave.is_finished() {
        thread::sleep(Duration::from_millis(50));
    }
    let dial = ["dial", "alice", "dave", "--hang-up-after", "15", "--open-links-with", links];
    let alice = succeeds(&dial);
    for output in [alice, dave.join().unwrap()] {
        let page = output.lines().find(|line| line.starts_with('{')).unwrap();
        let page: serde_json::Value = serde_json::from_str(page).unwrap();
        assert!(page["framesDecoded"].as_u64().unwrap() > 0, "{output}");
        // It ended by itself: nobody closed it.
        let last = page["events"].as_array().unwrap().last().unwrap();
        assert_eq!((&last["type"], &page["state"]), (&"ended".into(), &"closed".into()));
    }
    // The video had bearers of its own at both terminals, until the call's end.
    let bearers = fs::read_to_string(format!("{RUN}/bearers.jsonl")).unwrap();
    for name in ["\"install\"", "\"remove\""] {
        let of_video = bearers.lines().filter(|line| line.contains("af.ims.test;video-"));
        assert_eq!(of_video.filter(|line| line.contains(name)).count(), 2, "{bearers}");
    }
    // A call that nobody takes ends the video too.
    succeeds(&["call", "alice", "dave", "--end", "cancelled"]);
    let told = fs::read_to_string(format!("{RUN}/as.jsonl")).unwrap();
    for state in ["begin", "ended"] {
        assert_eq!(told.matches(&format!("\"POST call {state}\"")).count(), 2, "{state}");
    }
    // Links end with their call.
    let link = told_link();
    let page = in_terminal("alice", || web_status(&link));
    assert_eq!(page, 404, "{link}");
}

/// Status of a page, whoever has signed its certificate.
fn web_status(url: &str) -> u16 {
    let script = "process.env.NODE_TLS_REJECT_UNAUTHORIZED = 0;\
        console.log((await fetch(process.argv[1])).status)";
    let output = Command::new("node")
        .args(["--no-warnings", "--input-type=module", "-e", script, url])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

#[test]
fn intercepted_media_of_browsers_go_through_the_gateway() {
    let Some(folder) = web() else { return };
    let arguments = ["--web", folder.to_str().unwrap(), "--intercept"];
    let Some(_running) = Running::start(&arguments) else { return };
    let bob = thread::spawn({
        let folder = folder.clone();
        let bob = ["--name", "bob", "--password", "bob-secret", "--wait-for-call", "--until-ended"];
        move || driven("bob", &folder, &[&bob[..], &["--seconds", "1"]].concat())
    });
    while !is_registered("bob") && !bob.is_finished() {
        thread::sleep(Duration::from_millis(100));
    }
    let alice = thread::spawn(move || {
        let alice = ["--name", "alice", "--password", "alice-secret"];
        let call = ["--call", "sip:bob@ims.test", "--seconds", "6", "--hold"];
        driven("alice", &folder, &[&alice[..], &call[..]].concat())
    });
    while !has_passed("ACK") && !alice.is_finished() {
        thread::sleep(Duration::from_millis(100));
    }
    // The UPDATE that holds bob goes over WebSockets with TLS that both have opened again.
    succeeds(&["restart", "epcscf"]);
    for side in [alice.join().unwrap(), bob.join().unwrap()] {
        assert_eq!(side["remoteAddress"], "10.46.0.13", "{side}");
        assert!(side["framesDecoded"].as_u64().unwrap() > 0, "{side}");
        assert!(side["events"].to_string().contains("\"isHeld\":true"), "no hold: {side}");
    }
}

// [TS 29.214 §4.4.6.1]
#[test]
fn a_lost_bearer_ends_a_call_of_browsers_legs() {
    let Some(_running) = Running::start(&[]) else { return };
    let both = ["--via", "ws", "--callee-via", "ws"];
    succeeds(&[&["call", "alice", "bob", "--end", "aborted"], &both[..]].concat());
    let log = fs::read_to_string(format!("{RUN}/af.log")).unwrap();
    assert!(log.contains("Ok(\"SIP/2.0 200 OK"), "{log}");
    let bearers = fs::read_to_string(format!("{RUN}/bearers.jsonl")).unwrap();
    let removed = bearers.lines().filter(|line| line.contains("\"remove\"")).count();
    assert_eq!(removed, 2, "{bearers}");
}

#[test]
fn nothing_listens_outside_the_namespaces() {
    let before = sockets::listening();
    let Some(_running) = Running::start(&[]) else { return };
    assert_eq!(sockets::listening(), before);
    let root = fs::read_link("/proc/self/ns/net").unwrap();
    for part in ["pcscf", "epcscf", "icscf", "scscf", "hss", "pcrf", "agw", "eagw", "af", "as"] {
        let pid = fs::read_to_string(format!("{RUN}/{part}.process")).unwrap();
        let own = fs::read_link(format!("/proc/{}/ns/net", pid.trim())).unwrap();
        assert_ne!(own, root, "{part}");
    }
    // The test can fail: a socket of ours is seen.
    let _socket = std::net::TcpListener::bind("127.0.0.1:3868").unwrap();
    assert_ne!(sockets::listening(), before);
}
