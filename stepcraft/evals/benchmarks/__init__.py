"""The benchmarks that come with the package, one file each."""
