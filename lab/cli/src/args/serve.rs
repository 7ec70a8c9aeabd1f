//! Arguments of `weir serve`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args as ClapArgs;

/// `weir serve`
#[derive(ClapArgs)]
#[command(after_help = "\
The page simulates scenarios of the catalogue or edited ones, makes calls and links with sliders \
that change the network at once, and shows reports of the records. Open it in several windows: \
all show the same run. The address that is printed contains a secret token. Whoever knows it can \
use the page, so do not pass it on.

`weir link` runs only the commands of the list: ping, tcp (iperf3), and those of --command.

/TOKEN/metrics has the running call or link in Prometheus's text format. examples/grafana has a \
scrape configuration and a dashboard. They need an address that stays: use --port and \
--token-file.

Examples:
  weir serve
  weir serve --out runs --port 8099
  weir serve --command 'game=./game-client --server 10.45.0.2'
  weir serve --port 8099 --token-file ~/.weir-token")]
pub struct Serve {
    /// Records are written below this folder, and those in it can be compared.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub out: PathBuf,
    /// Port of the page (default: any free one).
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Address of this machine at which the page is served. With another one than the default, the
    /// token crosses the network unencrypted.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub listen: IpAddr,
    /// A command that a link may run on host A, with its name on the page. A shell runs it.
    #[arg(long = "command", value_name = "NAME=COMMAND", value_parser = named_command)]
    pub commands: Vec<(String, String)>,
    /// Take the token from this file instead of a new one each time. A missing file is created.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

fn named_command(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, command)) if !name.trim().is_empty() && !command.trim().is_empty() => {
            Ok((name.trim().into(), command.trim().into()))
        }
        _ => Err("write NAME=COMMAND, such as 'game=./game-client'".into()),
    }
}
