//! Tests of the program weir in real time: networks, browsers, and other programs.

mod app;
mod app_ends;
mod app_quality;
mod arena;
mod bindings;
mod collect;
mod examples;
mod full_disk;
mod interactive;
mod killed;
mod left;
mod link;
mod own_controller;
mod playwright;
mod plugin;
mod prometheus;
mod serve;
mod serve_page;
mod versions;
mod voice_agent;
mod watch;
mod wic;
