//! Tests of the models of the network from outside.

mod cellular_properties;
#[path = "../../../../library/weir/tests/it/heap.rs"]
mod heap;
mod memory;
mod ns_3;
mod queues;
mod wifi;
mod wifi_properties;
