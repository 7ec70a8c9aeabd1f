//! A person who talks before a shelf. Head and shoulders sway, the mouth moves, the eyes blink.

use std::f64::consts::TAU;

use super::{Colour, Point, hash, inside};

const WALL: Colour = Colour::new(150.0, 122.0, 132.0);
const SHELF: Colour = Colour::new(70.0, 118.0, 140.0);
const SKIN: Colour = Colour::new(165.0, 112.0, 150.0);
const HAIR: Colour = Colour::new(45.0, 124.0, 134.0);
const SHIRT: Colour = Colour::new(80.0, 150.0, 112.0);
const STRIPE: Colour = Colour::new(110.0, 145.0, 116.0);
const EYE: Colour = Colour::grey(225.0);
const DARK: Colour = Colour::new(40.0, 124.0, 136.0);
const LIPS: Colour = Colour::new(105.0, 116.0, 160.0);

/// Books on a shelf, from the left edge of the picture to the right, and their rows.
const BOOKS: f64 = 36.0;
const SHELVES: f64 = 3.0;
/// Syllables and blinks in a loop. Whole numbers, so that the loop has no cut.
const SYLLABLES: f64 = 15.0;
const BLINKS: f64 = 1.0;
/// Share of a blink's period in which the eye is closed.
const CLOSED: f64 = 0.04;

pub(super) fn colour(point: Point) -> Colour {
    let turn = TAU * point.moment;
    // The head moves by a twentieth of the height, and a little faster up and down.
    let sway = 0.035 * libm::sin(turn) + 0.012 * libm::sin(3.0 * turn);
    let nod = 0.012 * libm::sin(2.0 * turn + 1.0);
    let (x, y) = (point.x - sway, point.y - nod);
    let body = shirt(Point { x: point.x - 0.4 * sway, ..point }, background(point));
    face(Point { x, y: y + 0.08, ..point }, body)
}

fn background(point: Point) -> Colour {
    let light = 18.0 * libm::sin(1.7 * point.x + 0.4) - 20.0 * point.y;
    let wall = Colour { y: WALL.y + light, ..WALL };
    if point.x < 0.1 {
        return wall;
    }
    // A shelf stands at the right: books of several heights and colours.
    let row = libm::floor((point.y + 0.5) * SHELVES);
    let within = (point.y + 0.5) * SHELVES - row;
    let book = libm::floor((point.x + 2.0) * BOOKS / 2.0);
    let bits = hash((book as u32).wrapping_mul(31).wrapping_add(row as u32));
    let top = 0.15 + 0.35 * f64::from(bits & 0xFF) / 255.0;
    if within > 0.94 {
        return SHELF;
    }
    if within < top {
        return Colour { y: wall.y * 0.45, ..wall };
    }
    let shade = f64::from((bits >> 8) & 0xFF) / 255.0;
    let tint = f64::from((bits >> 16) & 0xFF) / 255.0 - 0.5;
    Colour::new(50.0 + 120.0 * shade, 128.0 + 40.0 * tint, 128.0 - 50.0 * tint)
}

fn shirt(point: Point, behind: Colour) -> Colour {
    let slope = 0.30 + 0.9 * point.x * point.x;
    let side = libm::fabs(point.x) - 0.46;
    let edge = (slope - point.y).max(side);
    let waves = libm::sin(60.0 * point.x + 8.0 * libm::sin(9.0 * point.y));
    let cloth = SHIRT.towards(STRIPE, 0.5 + 0.5 * waves);
    let shade = 30.0 * (point.y - 0.3) * point.x;
    let cloth = Colour { y: cloth.y - shade, ..cloth };
    behind.towards(cloth, inside(edge, point.pixel))
}

/// Signed distance to an ellipse, near enough for its edge.
fn ellipse(x: f64, y: f64, width: f64, height: f64) -> f64 {
    (libm::hypot(x / width, y / height) - 1.0) * width.min(height)
}

fn face(point: Point, behind: Colour) -> Colour {
    let Point { x, y, pixel, moment } = point;
    let neck = (libm::fabs(x) - 0.075).max(y - 0.42).max(0.1 - y);
    let shade = Colour { y: SKIN.y - 35.0, ..SKIN };
    let mut colour = behind.towards(shade, inside(neck, pixel));
    let hair = ellipse(x, y + 0.04, 0.195, 0.255);
    let strands = 10.0 * libm::sin(170.0 * x + 20.0 * libm::sin(14.0 * y));
    let strands = Colour { y: HAIR.y + strands, ..HAIR };
    colour = colour.towards(strands, inside(hair, pixel));
    let skin = ellipse(x, y - 0.03, 0.155, 0.215);
    let light = 30.0 * (x * 2.0 - y) + 10.0;
    let skin_colour = Colour { y: SKIN.y + light, ..SKIN };
    colour = colour.towards(skin_colour, inside(skin, pixel));
    for side in [-1.0, 1.0] {
        colour = eye(Point { x: x - 0.06 * side, y: y + 0.015, ..point }, skin_colour, colour);
        let brow = ellipse(x - 0.06 * side, y + 0.055, 0.036, 0.008);
        colour = colour.towards(DARK, inside(brow, pixel));
    }
    let nose = ellipse(x + 0.008, y - 0.055, 0.013, 0.04);
    let nose_colour = Colour { y: skin_colour.y - 22.0, ..skin_colour };
    colour = colour.towards(nose_colour, inside(nose, pixel));
    // Syllables are of several strengths, and there are pauses.
    let turn = TAU * moment;
    let strength = (0.6 + 0.6 * libm::sin(2.0 * turn) + 0.3 * libm::sin(5.0 * turn)).max(0.0);
    let open = 0.004 + 0.022 * strength * (0.5 - 0.5 * libm::cos(SYLLABLES * turn));
    let lips = ellipse(x, y - 0.135, 0.052, 0.012 + open);
    let mouth = ellipse(x, y - 0.135, 0.042, open);
    colour = colour.towards(LIPS, inside(lips, pixel));
    colour.towards(DARK, inside(mouth, pixel))
}

fn eye(point: Point, lid: Colour, behind: Colour) -> Colour {
    let Point { x, y, pixel, moment } = point;
    let blink = (moment * BLINKS + 0.5).fract();
    let white = ellipse(x, y, 0.03, 0.015);
    if blink < CLOSED {
        let line = Colour { y: lid.y - 30.0, ..lid };
        return behind.towards(line, inside(ellipse(x, y, 0.03, 0.004), pixel));
    }
    let look = 0.006 * libm::sin(2.0 * TAU * moment);
    let iris = ellipse(x - look, y, 0.013, 0.013).max(white);
    let eye = behind.towards(EYE, inside(white, pixel));
    eye.towards(DARK, inside(iris, pixel))
}
