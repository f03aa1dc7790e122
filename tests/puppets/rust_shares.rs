// rust_shares SECONDS: two threads; each spends 3/4 of its CPU time at the end of a recursion, through a closure and a
// trait object, and 1/4 in a plain function. No crates: the CPU clock is read through libc's own function.

use std::thread;

// std::hint::black_box is younger than the rustc of Debian 12.
#[inline(always)]
fn black_box<T: Copy>(value: T) -> T {
    unsafe { std::ptr::read_volatile(&value) }
}

#[repr(C)]
struct TimeSpec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut TimeSpec) -> i32;
}

const THREAD_CPU_CLOCK: i32 = 3;

fn thread_cpu_ns() -> u64 {
    let mut now = TimeSpec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(THREAD_CPU_CLOCK, &mut now) };
    now.seconds as u64 * 1_000_000_000 + now.nanoseconds as u64
}

#[inline(always)]
fn burn_until(deadline: u64) {
    loop {
        let mut state: u64 = 1;
        for _ in 0..8000 {
            state = black_box(state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
        }
        if thread_cpu_ns() >= deadline {
            return;
        }
    }
}

trait Work {
    fn run(&self, depth: u32, deadline: u64) -> u64;
}

struct Recursion;
struct Boxed(Box<dyn Fn(u32, u64) -> u64 + Send + Sync>);

impl Work for Recursion {
    #[inline(never)]
    fn run(&self, depth: u32, deadline: u64) -> u64 {
        rust_recurse(depth, deadline) + 1
    }
}

impl Work for Boxed {
    #[inline(never)]
    fn run(&self, depth: u32, deadline: u64) -> u64 {
        (self.0)(depth, deadline) + 1
    }
}

#[inline(never)]
pub fn rust_hot(deadline: u64) -> u64 {
    burn_until(deadline);
    black_box(1)
}

#[inline(never)]
pub fn rust_cold(deadline: u64) -> u64 {
    burn_until(deadline);
    black_box(2) // equal code would be merged with rust_hot
}

#[inline(never)]
fn rust_recurse(depth: u32, deadline: u64) -> u64 {
    if depth == 0 {
        return rust_hot(deadline) + 1;
    }
    black_box(rust_recurse(depth - 1, deadline)) + 1
}

fn spend(total: u64) {
    let works: Vec<Box<dyn Work>> = vec![
        Box::new(Recursion),
        Box::new(Boxed(Box::new(|depth, deadline| black_box(rust_recurse(depth, deadline)) + 1))),
    ];
    let start = thread_cpu_ns();
    let mut done = 0;
    let mut turn = 0;
    while done < total {
        black_box(works[turn % 2].run(20, start + done + 30_000_000));
        black_box(rust_cold(start + done + 40_000_000));
        done += 40_000_000;
        turn += 1;
    }
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let total = (seconds * 1e9) as u64;
    let other = thread::spawn(move || spend(total));
    spend(total);
    other.join().unwrap();
}
