# Every target works on a fresh clone. The work is in scripts/; see CONTRIBUTING.md.

.DEFAULT_GOAL := build
.PHONY: install web build demo test lint bench clean

WEB_SOURCES := $(shell find web/src -type f) web/build.mjs web/tsconfig.json

install: ## Debian packages that are missing, if root; says what else to install
	scripts/install.sh

web: web/dist/report.html ## the report viewer, which the program carries with it

build: web ## target/release/weir
	cargo build --release --package weir-cli

demo: install build ## simulate, call, report; the last line is the report's path
	scripts/demo.sh

test: web ## every test there is; says what it skipped and why
	scripts/test.sh

lint: web ## format, clippy and docs without a warning
	scripts/lint.sh

bench: build ## Criterion benches, then speeds as ratios, beside those of peers
	cargo bench --package weir --bench controllers
	cargo bench --package weir --bench feedback
	cargo bench --package weir-net --bench bottleneck
	cargo bench --package weir-net --bench wifi
	cargo bench --package weir-lab --bench simulate
	cargo run --release --package weir-cli -- bench
	scripts/bench-peers.sh

clean: ## back to a fresh clone, but for records and reports that you made
	cargo clean
	rm -rf web/dist web/node_modules web/screenshots crates/wire/fuzz/target

web/dist/report.html: web/node_modules/.package-lock.json $(WEB_SOURCES)
	cd web && npm run build

web/node_modules/.package-lock.json: web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	touch $@
