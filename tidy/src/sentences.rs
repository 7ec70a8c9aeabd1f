//! A reader understands each sentence of the results and of the changelog at once: its words are
//! counted.

use crate::files::{read, with_ending};

/// Words that a sentence may have. A piece of code is one word.
const LONGEST_SENTENCE: usize = 30;
/// Entries that a version of the changelog may have, and sentences of an entry.
const ENTRIES: usize = 60;
const SENTENCES: usize = 2;

/// A text with a word in place of each piece of code, and without the targets of links.
fn plain(text: &str) -> String {
    let mut without_code = String::new();
    for (index, part) in text.split('`').enumerate() {
        without_code.push_str(if index % 2 == 0 { part } else { "Code" });
    }
    let mut parts = without_code.split("](");
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        found.push_str(part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    found.replace('[', "")
}

/// Whether a line is the first one of a list's item.
fn begins_an_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ") || (number != line && number.starts_with(". "))
}

/// The paragraphs, items and cells of a page, without headings, comments and blocks of code.
fn paragraphs(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = String::new();
    let mut in_code = false;
    for line in page.lines().map(str::trim) {
        let is_fence = line.starts_with("```");
        let is_text = !in_code && !is_fence && !line.starts_with(['#', '|', '<']);
        in_code ^= is_fence;
        if !is_text || line.is_empty() || begins_an_item(line) {
            found.push(plain(&open));
            open.clear();
        }
        if is_text {
            open.push_str(line);
            open.push('\n');
        } else if !in_code && line.starts_with('|') {
            found.extend(plain(line).split('|').map(str::to_owned));
        }
    }
    found.push(plain(&open));
    found
}

/// Whether a sentence ends with a word that another one follows.
fn ends_a_sentence(word: &str, next: &str) -> bool {
    let begins = next.trim_start_matches(['(', '"', '_']);
    word.trim_end_matches(['*', '_', ')', '"']).ends_with(['.', '!', '?', ':'])
        && begins.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || c == '*')
}

/// The sentences of a paragraph, each with the number of its words.
fn sentences(paragraph: &str) -> Vec<(String, usize)> {
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    let mut found = vec![(String::new(), 0)];
    for (index, word) in words.iter().enumerate() {
        let (text, count) = found.last_mut().unwrap();
        text.push_str(word);
        text.push(' ');
        *count += usize::from(word.contains(char::is_alphanumeric));
        if words.get(index + 1).is_some_and(|next| ends_a_sentence(word, next)) {
            found.push((String::new(), 0));
        }
    }
    found
}

#[test]
fn sentences_of_the_results_have_at_most_30_words() {
    let mut pages = with_ending("docs/results", ".md");
    let sluice = "docs/reference/controllers/sluice.md";
    pages.push((sluice.to_owned(), read(sluice)));
    for (path, page) in pages {
        let mut long = Vec::new();
        for paragraph in paragraphs(&page) {
            long.extend(sentences(&paragraph));
        }
        long.retain(|(_, words)| *words > LONGEST_SENTENCE);
        assert!(long.is_empty(), "{path}: split {long:#?}");
    }
}

/// Each entry begins with its product in bold.
#[test]
fn a_version_of_the_changelog_has_few_entries_of_two_sentences() {
    for version in read("CHANGELOG.md").split("\n## [").skip(1) {
        let mut entries = 0;
        for entry in version.lines().filter(|line| line.starts_with("- ")) {
            let Some((_, text)) = entry.split_once(":** ") else { panic!("no product: {entry}") };
            let said = sentences(&plain(text));
            // What stands before a colon is no sentence of its own here.
            let mut whole = 0;
            for (text, words) in &said {
                whole += usize::from(!text.ends_with(": "));
                assert!(*words <= LONGEST_SENTENCE, "split {text}");
            }
            assert!(whole <= SENTENCES, "shorten {entry}");
            entries += 1;
        }
        assert!(entries <= ENTRIES, "{entries} entries of [{}", version.lines().next().unwrap());
    }
}

#[test]
fn words_are_counted_by_sentence_item_and_cell() {
    let page = "# A heading\n\nOne `a b` [three](x.md). **Two\nwords.** Last: 1 of e.g. five.\n\
        - An item\n1. And one\n```sh\nno text\n```\n| a cell | `x | y` |\n|---|---|\n";
    let mut counts = Vec::new();
    for paragraph in paragraphs(page) {
        counts.extend(sentences(&paragraph).into_iter().map(|(_, words)| words));
    }
    counts.retain(|words| *words > 0);
    assert_eq!(counts, [3, 2, 1, 4, 2, 1, 2, 2, 1]);
}
