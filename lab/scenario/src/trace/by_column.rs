//! Tables in JSON that go by columns: a list for each, or, as pandas writes them, the cells of each
//! by the numbers of the rows, or names and rows apart.
//!
//! ```text
//! {"time": [0, 1], "rate_mbps": [8, 2]}
//! {"time": {"0": 0, "1": 1}, "rate_mbps": {"0": 8, "1": 2}}
//! {"columns": ["time", "rate_mbps"], "data": [[0, 8], [1, 2]]}
//! ```

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A table that went by columns.
#[derive(Debug, PartialEq)]
pub(super) struct ByColumn {
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// The table of a text; `None` if it is no such one.
pub(super) fn table(text: &str) -> Option<ByColumn> {
    let Ok(Value::Object(members)) = serde_json::from_str(text) else { return None };
    match split(&members) {
        Some(table) => Some(table),
        None => columns(&members),
    }
}

/// Names of columns, and rows.
fn split(members: &Map<String, Value>) -> Option<ByColumn> {
    let (Value::Array(names), Value::Array(rows)) = (members.get("columns")?, members.get("data")?)
    else {
        return None;
    };
    let header: Vec<String> = names.iter().map(cell).collect::<Option<_>>()?;
    let mut found = Vec::new();
    for row in rows {
        let Value::Array(cells) = row else { return None };
        found.push(cells.iter().map(cell).collect::<Option<_>>()?);
    }
    Some(ByColumn { header, rows: found })
}

/// Columns of as many cells. Other members are no columns.
fn columns(members: &Map<String, Value>) -> Option<ByColumn> {
    let mut header = Vec::new();
    let mut columns: Vec<Vec<String>> = Vec::new();
    for (name, value) in members {
        let Some(cells) = cells(value) else { continue };
        if let Some(first) = columns.first()
            && first.len() != cells.len()
        {
            return None;
        }
        header.push(name.clone());
        columns.push(cells);
    }
    if columns.len() < 2 {
        return None;
    }
    let mut rows = vec![Vec::new(); columns[0].len()];
    for cells in columns {
        for (row, cell) in rows.iter_mut().zip(cells) {
            row.push(cell);
        }
    }
    Some(ByColumn { header, rows })
}

/// The cells of a column by their order, or by the numbers of their rows.
fn cells(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(cells) => cells.iter().map(cell).collect(),
        Value::Object(cells) => {
            let mut numbered: BTreeMap<u64, String> = BTreeMap::new();
            for (number, value) in cells {
                numbered.insert(number.parse().ok()?, cell(value)?);
            }
            Some(numbered.into_values().collect())
        }
        _ => None,
    }
}

fn cell(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_numbered_cells_and_split_tables_are_one() {
        let rows = [["0", "8"], ["10", ""], ["20", "2.5"]].map(|row| row.map(String::from).into());
        let header = ["time", "v"].map(String::from).to_vec();
        let expected = Some(ByColumn { header, rows: rows.to_vec() });
        for text in [
            r#"{"time": [0, 10, 20], "v": [8, null, 2.5], "made by": "me"}"#,
            r#"{"time": {"0": 0, "2": 10, "11": 20}, "v": {"0": 8, "2": null, "11": 2.5}}"#,
            r#"{"columns": ["time", "v"], "index": [0, 1, 2],
                "data": [[0, 8], [10, null], [20, 2.5]]}"#,
        ] {
            assert_eq!(table(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_table_by_columns_is_none() {
        for text in [
            "[]",
            "{}",
            r#"{"time": [0, 1]}"#,
            r#"{"time": [0, 1], "v": [8]}"#,
            r#"{"rows": [{"time": 0}], "other": [1]}"#,
            r#"{"a": {"x": 1}, "b": {"y": 2}}"#,
        ] {
            assert_eq!(table(text), None, "{text}");
        }
    }
}
