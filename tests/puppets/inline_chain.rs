// inline_chain SECONDS: iterators, closures, generics and trait objects, inlined several levels deep.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[inline]
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 33)).wrapping_mul(0xff51afd7ed558ccd);
    value ^ (value >> 29)
}

trait Robot {
    fn work(&self, shelves: &mut [Vec<u64>]) -> u64;
}

struct Sorter;
struct Labeller;

impl Robot for Sorter {
    fn work(&self, shelves: &mut [Vec<u64>]) -> u64 {
        for shelf in shelves.iter_mut() {
            shelf.sort_unstable_by_key(|&weight| mix(weight));
            shelf.rotate_left(7);
        }
        shelves.iter().map(|shelf| weigh(shelf)).max().unwrap_or(0)
    }
}

impl Robot for Labeller {
    fn work(&self, shelves: &mut [Vec<u64>]) -> u64 {
        let mut labels: BTreeMap<String, u64> = BTreeMap::new();
        for shelf in shelves.iter() {
            *labels.entry((weigh(shelf) % 97).to_string()).or_insert(0) += shelf[0] & 0xff;
        }
        labels.values().sum()
    }
}

#[inline]
fn weigh(shelf: &[u64]) -> u64 {
    shelf.iter().filter(|&&weight| weight % 3 != 0).fold(0, |sum: u64, &weight| sum.wrapping_add(mix(weight)))
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let mut next = 1u64;
    let mut shelves: Vec<Vec<u64>> = (0..64)
        .map(|_| {
            (0..200)
                .map(|_| {
                    next = mix(next + 1);
                    next
                })
                .collect()
        })
        .collect();
    let robots: Vec<Box<dyn Robot>> = vec![Box::new(Sorter), Box::new(Labeller)];
    let start = Instant::now();
    let mut done = 0u64;
    while start.elapsed() < Duration::from_secs_f64(seconds) {
        for robot in &robots {
            done = done.wrapping_add(robot.work(&mut shelves));
        }
    }
    println!("{}", done);
}
