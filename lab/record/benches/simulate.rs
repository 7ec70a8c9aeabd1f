//! How long a simulated run takes: `lund/rmcat-ns3`, 200 s with one flow, full packet path,
//! feedback as TWCC bytes.

use std::hint::black_box;

use criterion::Criterion;
use weir_controllers::LabAlgorithm;
use weir_net::Seed;
use weir_scenario::catalogue;

fn simulate(criterion: &mut Criterion) {
    let scenario = catalogue::find("lund/rmcat-ns3").expect("it is in the catalogue").remove(0);
    let mut group = criterion.benchmark_group("lund/rmcat-ns3, 200 s");
    for algorithm in LabAlgorithm::all() {
        let config = scenario.sim_config(algorithm);
        group.bench_function(algorithm.name(), |bencher| {
            bencher.iter(|| black_box(weir_sim::run(&config, Seed::new(1))));
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    simulate(&mut criterion);
    criterion.final_summary();
}
