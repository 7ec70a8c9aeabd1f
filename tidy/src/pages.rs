//! How pages are laid out: a paragraph a line, and few pages of results, none of them long.

use crate::files::{read, with_ending};

/// Pages of results, and the lines that one may have.
const RESULTS: usize = 14;
const RESULT_LINES: usize = 200;

/// Folders whose README says what is here and where to start, and the lines that it may have.
const MAPPED: [&str; 8] =
    ["library", "lab", "ims", "arena", "scenarios", "scripts", "lab/web", "examples"];
const FEWEST_MAP_LINES: usize = 3;
const MOST_MAP_LINES: usize = 15;

/// The first table of a page that a command makes and that does not end before the next one:
/// `make results` would write it over all that stands between.
fn without_end(page: &str) -> Option<&str> {
    let mut begun = None;
    for line in page.lines() {
        if line == "<!-- end -->" {
            begun = None;
        } else if line.starts_with("<!-- results") && begun.replace(line).is_some() {
            break;
        }
    }
    begun
}

/// Whether a line has text, and is no heading, table, comment, picture or rule.
fn is_text(line: &str) -> bool {
    let begins = ["#", "|", "<", ">", "    ", "![", "---", "==="];
    !line.is_empty() && !begins.iter().any(|begin| line.starts_with(begin))
}

/// Whether a line of text goes on with what the line before it says.
fn goes_on(before: &str, line: &str) -> bool {
    let trimmed = line.trim_start();
    let number = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_item = trimmed.starts_with(['-', '*', '+']) || number.starts_with(". ");
    is_text(before) && is_text(trimmed) && !is_item && !before.ends_with("  ")
}

/// The first line of a page that a paragraph was broken before.
fn broken(page: &str) -> Option<&str> {
    let mut in_code = false;
    let mut before = "";
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        if !in_code && !is_fence && goes_on(before, line) {
            return Some(line);
        }
        in_code ^= is_fence;
        before = if in_code || is_fence { "" } else { line };
    }
    None
}

#[test]
fn a_paragraph_of_a_page_is_one_line() {
    for (path, page) in with_ending("", ".md") {
        // The source of the Internet-Draft begins with a block of YAML, and is no page.
        if !page.starts_with("---") {
            assert_eq!(broken(&page), None, "{path}: join this line with the one before");
        }
    }
}

#[test]
fn broken_paragraphs_are_found_outside_of_code_and_tables() {
    let whole = "# A\n\nOne line.\n\n- An item\n  - and one in it\n1. And one\n\n| a | b |\n\
        |---|---|\n```sh\none\ntwo\n```\nAfter code.\n<!-- end -->\n";
    assert_eq!(broken(whole), None);
    assert_eq!(broken("A line\nand its end.\n"), Some("and its end."));
    assert_eq!(broken("- An item\n  and its end.\n"), Some("  and its end."));
}

#[test]
fn a_table_that_a_command_makes_has_an_end() {
    for (path, page) in with_ending("docs", ".md") {
        assert_eq!(without_end(&page), None, "{path}: `<!-- end -->` is missing after this table");
    }
    let (table, end) = ("<!-- results: weir list -->", "<!-- end -->");
    assert_eq!(without_end(&format!("{table}\n|a|\n{end}\n{table}\n{end}\n")), None);
    assert_eq!(without_end(&format!("{table}\n|a|\n{table}\n{end}\n")), Some(table));
    assert_eq!(without_end(&format!("{table}\n|a|\n")), Some(table));
}

#[test]
fn the_readme_of_a_large_folder_is_a_map_on_one_screen() {
    for folder in MAPPED {
        let lines = read(&format!("{folder}/README.md")).lines().count();
        let is_map = (FEWEST_MAP_LINES..=MOST_MAP_LINES).contains(&lines);
        assert!(is_map, "{folder}/README.md has {lines} lines");
    }
}

#[test]
fn results_are_few_pages_and_short() {
    let pages = with_ending("docs/results", ".md");
    assert!(pages.len() <= RESULTS, "{} pages of results", pages.len());
    for (path, page) in pages {
        let lines = page.lines().count();
        assert!(lines <= RESULT_LINES, "{path} has {lines} lines");
    }
}
