"""The algorithms, benchmarks and ablation tables of the papers that Stepcraft implements."""
