//! Files: each format becomes the reports of each stream, and what else the file tells.

pub(crate) mod dump;
pub(crate) mod format;
pub(crate) mod input;
pub(crate) mod packets;
pub(crate) mod plain_text;
pub(crate) mod srtp;
pub(crate) mod time_of_day;
