//! A document of text, headings and a chart, which stands for a moment and scrolls on. The last
//! page is the first again.

use super::{Colour, Point, WHITE, hash};

const PAPER: Colour = Colour::grey(WHITE);
const INK: Colour = Colour::grey(35.0);
const HEADING: Colour = Colour::new(70.0, 170.0, 100.0);
const BAR: Colour = Colour::new(110.0, 90.0, 170.0);
/// A loop has two pages. Each stands for this share of its time, and then scrolls to the next.
const PAGES: f64 = 2.0;
const STANDS: f64 = 0.6;
/// Lines of a page, which is as high as the picture, and height of its letters in a line.
const LINES: f64 = 24.0;
const LETTER: f64 = 0.62;
/// Width of a letter with its gap, in heights of a line.
const ADVANCE: f64 = 0.5;
/// A letter consists of 5 by 7 cells.
const COLUMNS: u32 = 5;
const ROWS: u32 = 7;
/// Every eighth line is a heading, and the third after it is empty.
const HEADINGS: u32 = 8;
/// The chart is at the right of each page, from this line on.
const CHART: (u32, u32) = (12, 20);
const CHART_X: f64 = 0.25;
/// Width of the text's margins, from the middle of the picture.
const MARGIN: f64 = 0.80;

pub(super) fn colour(point: Point) -> Colour {
    let page = point.moment * PAGES;
    let within = page.fract();
    let scrolled = ((within - STANDS) / (1.0 - STANDS)).clamp(0.0, 1.0);
    // It begins and ends slowly.
    let eased = scrolled * scrolled * (3.0 - 2.0 * scrolled);
    let down = (libm::floor(page) + eased + point.y + 0.5) % PAGES;
    let line = libm::floor(down * LINES);
    let y = down * LINES - line;
    document(point.x, y, line as u32, point.pixel)
}

/// The colour at `y`, a share of the height of a line.
fn document(x: f64, y: f64, line: u32, pixel: f64) -> Colour {
    let of_page = line % LINES as u32;
    if (CHART.0..CHART.1).contains(&of_page) && x > CHART_X {
        return chart(x, y, line);
    }
    let place = (x + MARGIN) * LINES / ADVANCE;
    if place < 0.0 || x > MARGIN || y > LETTER {
        return PAPER;
    }
    let (letter, within) = (libm::floor(place) as u32, place.fract());
    let is_heading = line.is_multiple_of(HEADINGS);
    let length = if is_heading { 20 } else { 40 + hash(line) % 25 };
    let is_blank = line % HEADINGS == 3 || letter > length;
    let is_space = hash(line * 977 + letter).is_multiple_of(6);
    if is_blank || is_space {
        return PAPER;
    }
    let ink = if is_heading { HEADING } else { INK };
    PAPER.towards(ink, coverage(hash(line * 131 + letter), within, y / LETTER, pixel))
}

/// How much ink a letter has at a place of its box: strokes and gaps by the bits of its shape.
fn coverage(shape: u32, x: f64, y: f64, pixel: f64) -> f64 {
    let cells = f64::from(COLUMNS + 1);
    let column = libm::floor(x * cells) as u32;
    let row = (libm::floor(y * f64::from(ROWS)) as u32).min(ROWS - 1);
    if column >= COLUMNS {
        return 0.0;
    }
    // A stem at the left, bars at top and middle, and the rest by chance.
    let by_chance = hash(shape.wrapping_add(row * COLUMNS + column)).is_multiple_of(3);
    let is_bar = (row == 0 && shape & 1 == 0) || (row == 3 && shape & 2 == 0);
    let is_ink = (column == 0 && shape & 4 == 0) || is_bar || by_chance;
    // Small letters are grey, as a renderer makes them.
    let sharpness = (ADVANCE / LINES / cells / pixel).clamp(0.35, 1.0);
    if is_ink { sharpness } else { 0.0 }
}

fn chart(x: f64, y: f64, line: u32) -> Colour {
    let bar = libm::floor((x - CHART_X) * 16.0);
    let is_gap = ((x - CHART_X) * 16.0).fract() > 0.7;
    let page = line / LINES as u32;
    let height = f64::from(hash(bar as u32 * 7 + page) % 80) / 10.0;
    let above = f64::from(CHART.1 - line % LINES as u32) - y;
    if is_gap || above > height || x > MARGIN { PAPER } else { BAR }
}
