//! Names, addresses and files of the parts.
//!
//! ```text
//!   terminals: one namespace each            core: one namespace, one address for each part
//!   10.46.N.2  <---- veth ---->  10.46.N.1   10.46.0.1 pcscf   10.46.0.2 epcscf  10.46.0.3 icscf
//!                                            10.46.0.4 scscf
//!                                            10.46.0.7 agw, 10.46.0.13 eagw (rtpengine)
//!                                            10.46.0.8 af      10.46.0.9 waf     10.46.0.10 wwsf
//!                                            10.46.0.11 as     10.46.0.12 facilitator
//!                                            127.46.0.N: Diameter and control of the gateways
//! ```
//!
//! The terminals' links lead to every address of the core but those of its loopback network: Linux
//! takes no packet for 127.0.0.0/8 from a link. What only the parts may say to each other and is
//! not protected by itself is there.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use weir_diameter::base;
use weir_nodes::policy::{Policy, WithoutBearer};
use weir_nodes::subscribers::{Subscriber, Subscribers};

/// Namespace of the core network.
pub(crate) const CORE: &str = "weir-ims-core";
/// What it has in place of a user's name.
const CORE_NAME: &str = "core";
/// First part of the name of each namespace.
pub(crate) const PREFIX: &str = "weir-ims-";
/// Port of SIP over datagrams.
pub(crate) const SIP_PORT: u16 = 5060;
/// Port of SIP over WebSockets.
pub(crate) const WEBSOCKET_PORT: u16 = 8080;
/// Port of SIP over WebSockets with TLS.
pub(crate) const SECURE_PORT: u16 = 8443;
/// Port of the application function.
pub(crate) const FUNCTION_PORT: u16 = 8081;
/// Port on which the facilitator hears of calls.
pub(crate) const FACILITATOR_PORT: u16 = 8082;
/// Port of Diameter.
pub(crate) const DIAMETER_PORT: u16 = 3868;
/// Longest name of a user, in bytes.
const MOST_NAME_BYTES: usize = 64;
/// Most terminals: one part of the address counts them.
const MOST_TERMINALS: usize = 200;

/// The schema of the user profile, which the S-CSCF wants. The package of Kamailio has it.
const SCHEMA: &str = "/usr/share/doc/kamailio/examples/ims/scscf/CxDataType_Rel7.xsd";

/// A part with an address of its own in the core.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    last: u8,
}

impl Part {
    /// Address that terminals reach, too.
    pub(crate) fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 46, 0, self.last)
    }

    /// Address that only the core reaches: for Diameter, and for the control of the gateways.
    fn inner_address(&self) -> Ipv4Addr {
        Ipv4Addr::new(127, 46, 0, self.last)
    }

    /// Whether only other parts speak to it. Then it has no address that terminals reach.
    pub(crate) fn is_inner(&self) -> bool {
        matches!(self.name, "hss" | "pcrf")
    }
}

/// All parts.
pub(crate) const PARTS: [Part; 13] = [
    Part { name: "pcscf", last: 1 },
    Part { name: "epcscf", last: 2 },
    Part { name: "icscf", last: 3 },
    Part { name: "scscf", last: 4 },
    Part { name: "hss", last: 5 },
    Part { name: "pcrf", last: 6 },
    Part { name: "agw", last: 7 },
    Part { name: "af", last: 8 },
    Part { name: "waf", last: 9 },
    Part { name: "wwsf", last: 10 },
    Part { name: "as", last: 11 },
    Part { name: "facilitator", last: 12 },
    Part { name: "eagw", last: 13 },
];

/// The parts that are Kamailio.
pub(crate) const CSCFS: [&str; 4] = ["icscf", "scscf", "pcscf", "epcscf"];

/// The media gateways: of the P-CSCF, and of the eP-CSCF.
pub(crate) const GATEWAYS: [&str; 2] = ["agw", "eagw"];

/// Address of a part that terminals reach, too.
pub(crate) fn address(name: &str) -> Ipv4Addr {
    part(name).address()
}

/// Address of a part that only the core reaches: for Diameter, and for the control of the gateways.
pub(crate) fn inner_address(name: &str) -> Ipv4Addr {
    part(name).inner_address()
}

fn part(name: &str) -> &'static Part {
    PARTS.iter().find(|part| part.name == name).expect("a name of this table")
}

/// Address of a terminal, and of the core's end of its link.
pub(crate) fn terminal_addresses(number: usize) -> (Ipv4Addr, Ipv4Addr) {
    let net = u8::try_from(number + 1).expect("checked against MOST_TERMINALS");
    (Ipv4Addr::new(10, 46, net, 2), Ipv4Addr::new(10, 46, net, 1))
}

/// The folder with configuration, logs and traces of the running IMS.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from("/run/weir-ims")
}

/// What the running or coming IMS is made from.
pub(crate) struct Files {
    pub(crate) subscribers: Subscribers,
    pub(crate) policy: Policy,
}

impl Files {
    /// Reads both files of the folder of a running IMS.
    pub(crate) fn of_running() -> anyhow::Result<Self> {
        let folder = folder();
        ensure!(folder.join("subscribers.toml").exists(), "no IMS is running: weir ims up");
        let subscribers = read(&folder.join("subscribers.toml"))?;
        Self::parse(&subscribers, &read(&folder.join("policy.toml"))?)
    }

    pub(crate) fn parse(subscribers: &str, policy: &str) -> anyhow::Result<Self> {
        let subscribers = Subscribers::from_toml(subscribers)
            .map_err(|error| anyhow::anyhow!("subscribers: {error}"))?;
        let policy =
            Policy::from_toml(policy).map_err(|error| anyhow::anyhow!("policy: {error}"))?;
        ensure!(
            subscribers.subscriber.len() <= MOST_TERMINALS,
            "at most {MOST_TERMINALS} subscribers"
        );
        // It becomes part of configuration files.
        let mut letters = subscribers.realm.chars();
        let is_domain = letters.all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
        ensure!(is_domain, "the realm must be a domain");
        check_users(&subscribers)?;
        Ok(Self { subscribers, policy })
    }

    /// Names of the users: the part of the private identity before the @.
    pub(crate) fn users(&self) -> impl Iterator<Item = &str> {
        self.subscribers.subscriber.iter().map(|one| user_name(&one.private))
    }

    /// Number of a user among the terminals.
    pub(crate) fn user(&self, name: &str) -> anyhow::Result<usize> {
        let known: Vec<&str> = self.users().collect();
        let found = known.iter().position(|user| *user == name);
        match found {
            Some(number) => Ok(number),
            None => bail!("no user '{name}': the subscribers are {}", known.join(", ")),
        }
    }
}

/// Users give their names to network namespaces: files, and words of commands.
fn check_users(subscribers: &Subscribers) -> anyhow::Result<()> {
    let mut seen = BTreeSet::new();
    for one in &subscribers.subscriber {
        let name = user_name(&one.private);
        let mut characters = name.chars();
        let begins_well = characters.next().is_some_and(|first| first.is_ascii_alphanumeric());
        ensure!(
            begins_well
                && characters.all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c))
                && name.len() <= MOST_NAME_BYTES,
            "subscribers: the private identity '{}' must have letters, digits, '.', '-' and '_' \
             before the @, begin with a letter or a digit, and have at most {MOST_NAME_BYTES} of \
             them",
            one.private.escape_debug()
        );
        ensure!(name != CORE_NAME, "subscribers: the name '{name}' is that of the core network");
        ensure!(seen.insert(name), "subscribers: two private identities begin with '{name}@'");
    }
    Ok(())
}

pub(crate) fn user_name(private: &str) -> &str {
    private.split('@').next().unwrap_or(private)
}

/// What `weir ims up` adds to the IMS.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    /// Media between browsers go through the gateway.
    pub(crate) intercept: bool,
    /// Secret of the eP-CSCF at the authorization server, if there is one.
    pub(crate) epcscf_secret: Option<String>,
}

/// Writes a file in a folder.
pub(crate) fn put(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes the configuration of all parts.
pub(crate) fn write(folder: &Path, files: &Files, extra: &Extra) -> anyhow::Result<()> {
    for name in CSCFS {
        let (server, application, template) = match name {
            "icscf" => ("hss", base::CX, include_str!("../ims/icscf.cfg")),
            "scscf" => ("hss", base::CX, include_str!("../ims/scscf.cfg")),
            _ => ("pcrf", base::RX, include_str!("../ims/pcscf.cfg")),
        };
        let diameter = include_str!("../ims/diameter.xml");
        let text = filled(template, name, folder, files, extra);
        put(folder, &format!("{name}.cfg"), &text)?;
        let text = filled(diameter, name, folder, files, extra)
            .replace("%server%", server)
            .replace("%application%", &application.to_string());
        put(folder, &format!("{name}.xml"), &text)?;
        fs::create_dir_all(folder.join(name))?;
    }
    tables(folder, &files.subscribers)?;
    for name in ["pcscf", "epcscf"] {
        subscriptions(&folder.join(format!("tables-{name}")))?;
    }
    if Path::new(SCHEMA).exists() {
        schema(folder)?;
    }
    put(folder, "hosts", &hosts(&files.subscribers.realm))
}

fn filled(template: &str, name: &str, folder: &Path, files: &Files, extra: &Extra) -> String {
    let without_bearer = match files.policy.without_bearer {
        WithoutBearer::Refuse => "refuse",
        _ => "continue",
    };
    let is_epcscf = name == "epcscf";
    let websocket = if is_epcscf { "#!define WITH_WEBSOCKET\n" } else { "" };
    let login = if is_epcscf && extra.epcscf_secret.is_some() { "#!define WITH_LOGIN" } else { "" };
    template
        .replace("%websocket%", &format!("{websocket}{login}"))
        .replace("%epcscf_secret%", extra.epcscf_secret.as_deref().unwrap_or_default())
        .replace("%intercept%", if extra.intercept { "yes" } else { "no" })
        .replace("%af%", &address("af").to_string())
        .replace("%agw%", &inner_address(if is_epcscf { "eagw" } else { "agw" }).to_string())
        .replace("%inner_address%", &inner_address(name).to_string())
        .replace("%scscf%", &address("scscf").to_string())
        .replace("%icscf%", &address("icscf").to_string())
        .replace("%without_bearer%", without_bearer)
        .replace("%name%", name)
        .replace("%address%", &address(name).to_string())
        .replace("%realm%", &files.subscribers.realm)
        .replace("%folder%", &folder.display().to_string())
        .replace("%xsd%", &folder.join("profile.xsd").display().to_string())
        .replace("%wildcards%", &wildcards(&files.subscribers))
}

/// For each wildcarded identity, the lines that replace an identity which it covers by the first
/// one of its registration set.
fn wildcards(subscribers: &Subscribers) -> String {
    let mut lines = String::new();
    for Subscriber { public, .. } in &subscribers.subscriber {
        let first = &public[0];
        for (before, after) in public.iter().filter_map(|identity| identity.split_once("!.*!")) {
            let [before, after] = [before, after].map(|part| part.replace('.', "\\."));
            lines += &format!(
                "    if ($ru =~ \"^{before}.*{after}$\") {{\n        $ru = \"{first}\";\n    }}\n"
            );
        }
    }
    lines
}

/// The schema of the package, with the type of wildcarded public identities, which it is too old to
/// know ([TS 29.228 §D]).
fn schema(folder: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(SCHEMA).with_context(|| format!("cannot read {SCHEMA}"))?;
    let start = text.find("name=\"tIdentityType\"").context(SCHEMA)?;
    let (before, of_type) = text.split_at(start);
    let of_type =
        of_type.replacen("maxInclusive value=\"2\"", "maxInclusive value=\"3\"", 1).replacen(
            "<xs:enumeration value=\"2\">",
            "<xs:enumeration value=\"3\"/><xs:enumeration value=\"2\">",
            1,
        );
    fs::write(folder.join("profile.xsd"), format!("{before}{of_type}"))?;
    Ok(())
}

/// Tables of the I-CSCF in the form of Kamailio's db_text. Colons are escaped.
fn tables(folder: &Path, subscribers: &Subscribers) -> anyhow::Result<()> {
    let folder = folder.join("tables");
    fs::create_dir_all(&folder)?;
    let scscf = subscribers.scscf.replace(':', "\\:");
    let realm = &subscribers.realm;
    for (name, text) in [
        ("s_cscf", format!("id(int) name(string) s_cscf_uri(string)\n1:First:{scscf}\n")),
        ("s_cscf_capabilities", "id(int) id_s_cscf(int) capability(int)\n1:1:0\n".into()),
        ("nds_trusted_domains", format!("id(int) trusted_domain(string)\n1:{realm}\n")),
        (
            "version",
            "table_name(string) table_version(int)\ns_cscf:6\ns_cscf_capabilities:6\n\
             nds_trusted_domains:6\n"
                .into(),
        ),
    ] {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}

/// An empty table of the subscriptions of a P-CSCF.
fn subscriptions(folder: &Path) -> anyhow::Result<()> {
    const COLUMNS: &str = "id(int,auto) pres_uri(string) pres_id(string) event(int) expires(int) \
        desired_expires(int) flag(int) etag(string) tuple_id(string,null) watcher_uri(string) \
        call_id(string) to_tag(string) from_tag(string) cseq(int) record_route(string,null) \
        contact(string) remote_contact(string) version(int) extra_headers(string)\n";
    fs::create_dir_all(folder)?;
    fs::write(folder.join("pua"), COLUMNS)?;
    fs::write(folder.join("version"), "table_name(string) table_version(int)\npua:7\n")?;
    Ok(())
}

/// The file /etc/hosts of the core.
fn hosts(realm: &str) -> String {
    let mut parts = String::new();
    for part in &PARTS {
        let address = if part.is_inner() { part.inner_address() } else { part.address() };
        parts += &format!("{address} {}.{realm}\n", part.name);
    }
    format!("127.0.0.1 localhost\n{parts}{} {realm}\n", address("icscf"))
}

fn on_path(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).exists())
}

/// The packages that this machine lacks, as one line. `None` if it has all.
pub(crate) fn missing() -> Option<String> {
    let modules = "/usr/lib/x86_64-linux-gnu/kamailio/modules";
    let packages = [
        (on_path("kamailio"), "kamailio"),
        (Path::new(modules).join("ims_icscf.so").exists(), "kamailio-ims-modules"),
        (Path::new(modules).join("websocket.so").exists(), "kamailio-websocket-modules"),
        (Path::new(modules).join("tls.so").exists(), "kamailio-tls-modules"),
        (Path::new(modules).join("presence.so").exists(), "kamailio-presence-modules"),
        (Path::new(modules).join("http_client.so").exists(), "kamailio-utils-modules"),
        (Path::new(modules).join("jansson.so").exists(), "kamailio-extra-modules"),
        (on_path("rtpengine"), "rtpengine-daemon"),
        (on_path("ip"), "iproute2"),
        (on_path("openssl"), "openssl"),
    ];
    let lacking: Vec<&str> =
        packages.iter().filter(|(is_there, _)| !is_there).map(|(_, name)| *name).collect();
    if !lacking.is_empty() {
        return Some(format!("missing Debian packages: {}", lacking.join(" ")));
    }
    if !Path::new(SCHEMA).exists() {
        return Some(format!("no {SCHEMA}: install kamailio with its documentation"));
    }
    None
}

/// Namespace of a user's terminal.
pub(crate) fn terminal_namespace(user: &str) -> String {
    format!("{PREFIX}{user}")
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn files() -> Files {
        let subscribers = include_str!("../ims/subscribers.toml");
        Files::parse(subscribers, include_str!("../ims/policy.toml")).unwrap()
    }

    #[test]
    fn configurations_have_no_unfilled_placeholders() {
        let folder = tempfile::tempdir().unwrap();
        let extra = Extra { intercept: true, epcscf_secret: Some("x".into()) };
        write(folder.path(), &files(), &extra).unwrap();
        for name in CSCFS {
            for ending in ["cfg", "xml"] {
                let text =
                    fs::read_to_string(folder.path().join(format!("{name}.{ending}"))).unwrap();
                let open = text.split_whitespace().find(|word| word.matches('%').count() > 1);
                assert_eq!(open, None, "{name}.{ending}");
            }
        }
        let scscf = fs::read_to_string(folder.path().join("scscf.cfg")).unwrap();
        let carol = "    if ($ru =~ \"^sip:office.*@ims\\.test$\") {\n        \
            $ru = \"sip:carol@ims.test\";";
        assert!(scscf.contains(carol), "no wildcarded identity");
        let hosts = fs::read_to_string(folder.path().join("hosts")).unwrap();
        assert!(hosts.contains("10.46.0.3 ims.test\n"));
    }

    #[test]
    fn a_user_name_that_cannot_name_a_namespace_is_refused() {
        for private in
            ["a b@ims.test", "../a@ims.test", "-a@ims.test", "@ims.test", "core@ims.test"]
        {
            let subscribers = format!(
                "realm = 'ims.test'\nscscf = 'sip:s:5060'\n[[subscriber]]\nprivate = '{private}'\n\
                 public = ['sip:a@ims.test']\npassword = 'x'\n"
            );
            let result = Files::parse(&subscribers, include_str!("../ims/policy.toml"));
            let error = result.err().expect(private).to_string();
            assert!(error.starts_with("subscribers: ") && error.lines().count() == 1, "{error}");
        }
    }

    #[test]
    fn users_are_found_by_name() {
        let files = files();
        assert_eq!(files.user("bob").unwrap(), 1);
        let error = files.user("eve").unwrap_err().to_string();
        assert_eq!(error, "no user 'eve': the subscribers are alice, bob, carol, dave, visitor1");
        assert_eq!(terminal_addresses(1).0, Ipv4Addr::new(10, 46, 2, 2));
    }
}
