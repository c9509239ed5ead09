//! The registry of the benchmark `scaling`: every reader of a format has a file that grows, or a case of its own.

#[path = "../../benches/scaling/readers.rs"]
#[expect(dead_code, reason = "shared with the benchmark, which uses the rest")]
mod readers;

#[test]
fn every_reader_of_a_format_is_in_the_growth_benchmark() {
    let growing = readers::growing_files();
    assert_eq!(
        readers::list_missing_formats(&growing),
        Vec::<&str>::new(),
        "add a sample to tests/fixtures, or a case to benches/scaling"
    );
}
