//! The answer: sentences, tables, records, pages. Here alone is prose.

mod advice;
pub(crate) mod answer;
pub(crate) mod app;
pub(crate) mod bottleneck;
pub(crate) mod fleet;
pub(crate) mod live;
pub(crate) mod nothing;
mod noticed;
pub(crate) mod page_events;
pub(crate) mod private;
pub(crate) mod record;
pub(crate) mod says;
pub(crate) mod table;
pub(crate) mod ticket;
pub(crate) mod verdict;
