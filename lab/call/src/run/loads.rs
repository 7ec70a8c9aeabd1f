//! Load traffic besides the calls: iperf3 on separate hosts.

use weir::units::{TimeDelta, Timestamp};
use weir_emu::{Emulator, Host, IperfLoad, LoadReceiver, RunningLoad};
use weir_scenario::{Congestion, Traffic};

use crate::error::CallError;
use crate::measure::outcome::LoadOutcome;
use crate::plan::CallConfig;

/// Port of iperf3. All receivers can use it because each one is on its own host.
const PORT: u16 = 5201;

/// All loads of a run. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Loads(Vec<Stage>);

#[derive(Debug)]
struct Stage {
    flow: usize,
    name: String,
    from: Host,
    iperf: IperfLoad,
    start: Timestamp,
    length: TimeDelta,
    state: LoadState,
}

#[derive(Debug)]
enum LoadState {
    Waiting(LoadReceiver),
    Running(RunningLoad),
    Failed(String),
}

impl Loads {
    /// Starts the receiving ends.
    pub(crate) fn open(config: &CallConfig, emulator: &Emulator) -> Result<Self, CallError> {
        let mut stages = Vec::new();
        for load in &config.loads {
            let [from, to] = load.hosts.map(|host| emulator.host(host));
            stages.push(Stage {
                flow: load.flow,
                name: load.name.clone(),
                from: from.clone(),
                iperf: iperf(&load.traffic),
                start: load.start,
                length: load.stop - load.start,
                state: LoadState::Waiting(LoadReceiver::start(to, PORT)?),
            });
        }
        Ok(Self(stages))
    }

    /// Starts the loads that are due.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        for stage in self.0.iter_mut().filter(|stage| stage.start <= now) {
            let failed = LoadState::Failed(String::new());
            stage.state = match std::mem::replace(&mut stage.state, failed) {
                LoadState::Waiting(receiver) => {
                    let seconds = stage.length.as_secs_f64().ceil() as u32;
                    match receiver.load(&stage.from, &stage.iperf, seconds) {
                        Ok(running) => LoadState::Running(running),
                        Err(error) => LoadState::Failed(error.to_string()),
                    }
                }
                other => other,
            };
        }
    }

    /// Waits for all reports. Also returns what went wrong, one line each.
    pub(crate) fn finish(self) -> (Vec<LoadOutcome>, Vec<String>) {
        let (mut outcomes, mut failures) = (Vec::new(), Vec::new());
        for Stage { flow, name, state, .. } in self.0 {
            match state {
                LoadState::Running(running) => match running.finish() {
                    Ok(report) => outcomes.push(LoadOutcome { flow, report }),
                    Err(error) => failures.push(format!("{name}: {error}")),
                },
                LoadState::Failed(cause) => failures.push(format!("{name}: {cause}")),
                LoadState::Waiting(_) => failures.push(format!("{name} did not start")),
            }
        }
        (outcomes, failures)
    }
}

fn iperf(traffic: &Traffic) -> IperfLoad {
    match traffic {
        Traffic::Tcp(tcp) => IperfLoad::Tcp {
            congestion_control: match tcp.congestion {
                Congestion::Cubic(_) => "cubic",
                Congestion::Reno => "reno",
                Congestion::Bbr => "bbr",
                // Named as the module of the L4S kernels. Others have none, and iperf3 says so.
                Congestion::Prague => "prague",
            }
            .into(),
        },
        Traffic::Udp(udp) => {
            IperfLoad::Udp { rate: udp.rate.rate(Timestamp::ZERO), packet: udp.packet }
        }
        _ => unreachable!("the plan makes loads of TCP and UDP alone"),
    }
}
