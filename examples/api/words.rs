// A Rust program that profiles itself. Its allocator is the C library's, so that its allocations are seen.
//
//   rustc -O words.rs -l dylib=ddprof -L FOLDER_OF_LIBDDPROF && ./words words.pb.gz
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int};

// As in ddprof.h.
#[repr(C)]
struct Options {
    size: usize,
    service: *const c_char,
    environment: *const c_char,
    service_version: *const c_char,
    tags: *const c_char,
    preset: *const c_char,
    event: *const c_char,
    url: *const c_char,
    output: *const c_char,
    log_mode: *const c_char,
    log_level: *const c_char,
    upload_period: u32,
    cpu_duration: u32,
    frequency: u32,
    exit_timeout: u32,
    program: *const c_char,
    arguments: *const *const c_char,
}

// First among all libraries: its malloc() has to come before the C library's.
#[link(name = "ddprof")]
extern "C" {
    fn ddprof_start(options: *const Options) -> c_int;
    fn ddprof_stop() -> c_int;
    fn ddprof_status() -> c_int;
    fn ddprof_last_error() -> *const c_char;
    fn ddprof_label_set(key: *const c_char, value: *const c_char) -> c_int;
}

fn last_error() -> String {
    unsafe { CStr::from_ptr(ddprof_last_error()) }.to_string_lossy().into_owned()
}

#[inline(never)]
fn count_words(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for word in text.split(' ') {
        *words.entry(word.to_string()).or_insert(0) += 1;
    }
    words
}

#[inline(never)]
fn keep(texts: &mut Vec<String>, number: usize) {
    texts.push(format!("{} {}", "the quick brown fox ".repeat(500), number));
}

fn main() {
    let output = std::env::args().nth(1).map(|path| CString::new(path).unwrap());
    let (service, preset) = (CString::new("words").unwrap(), CString::new("cpu_live_heap").unwrap());
    // Safe: null and 0 mean that the option is not set.
    let mut options: Options = unsafe { std::mem::zeroed() };
    options.size = std::mem::size_of::<Options>();
    options.service = service.as_ptr();
    options.preset = preset.as_ptr();
    options.output = output.as_ref().map_or(std::ptr::null(), |path| path.as_ptr());
    if unsafe { ddprof_start(&options) } != 0 {
        eprintln!("not profiled: {}", last_error());
    }
    println!("status {}", unsafe { ddprof_status() });
    let (key, value) = (CString::new("phase").unwrap(), CString::new("counting").unwrap());
    unsafe { ddprof_label_set(key.as_ptr(), value.as_ptr()) };
    let (mut texts, mut sum) = (Vec::new(), 0);
    for number in 0..3000 {
        keep(&mut texts, number);
        sum += count_words(&texts[number]).len();
    }
    println!("{} words", sum);
    if unsafe { ddprof_stop() } != 0 {
        eprintln!("profile: {}", last_error());
    }
}
