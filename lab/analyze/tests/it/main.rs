//! Tests of the analysis with dumps and captures.

mod answers;
mod by_reports;
mod captures;
mod consistent;
mod doors;
mod dump_doors;
mod dump_siblings;
mod dumps;
mod kinds;
mod made;
mod made_calls;
mod memory;
mod networks;
mod odd_files;
mod qlogs;
mod siblings;
