# Every target works on a fresh clone. The work is in scripts/; see CONTRIBUTING.md.

.DEFAULT_GOAL := build
.PHONY: deps test-deps web build quick check demo test test-all lint docs draft results format third-party bench install uninstall
.PHONY: arena-deps ims-web npm-deps c playground vectors dist install-c uninstall-c install-gst uninstall-gst clean

export PREFIX ?= /usr/local
export DESTDIR

# GStreamer looks in a folder of its own, so only a PREFIX that the user wrote counts for its plugin.
GST_PREFIX := $(if $(filter file,$(origin PREFIX)),env -u PREFIX)

WEB_SOURCES := $(shell find lab/web/src ims/agent -type f) lab/web/build.mjs lab/web/bundle.mjs lab/web/licences.mjs lab/web/tsconfig.json

deps: ## Debian packages that are missing, if root; says what else to install
	scripts/build/deps.sh

test-deps: ## the same, and what `make test-all` needs: a nightly compiler, cargo-fuzz, emulators of processors
	scripts/build/deps.sh --test-all

web: lab/web/dist/report.html ## the report viewer, which the program carries with it

# The simulator in WebAssembly must fit into the page, so it has a profile of its own.
playground: web ## lab/web/dist/playground.html: the simulator in one page that opens offline
	cargo build --profile wasm --package weir-wasm --target wasm32-unknown-unknown
	cd lab/web && node playground.mjs "$(abspath $(or $(CARGO_TARGET_DIR),target))/wasm32-unknown-unknown/wasm/weir_wasm.wasm"

vectors: ## target/vectors: all conformance vectors, of which the project has a few
	scripts/build/vectors.sh

dist: web ## dist/: what is published, with checksums and a list of parts
	scripts/release/dist.sh

build: web ## target/release/weir, the Python package of `weir fleet`, and target/THIRD-PARTY.md with their licences
	cargo build --release --package weir-cli --package weir-python
	node scripts/release/third-party.mjs

quick: web ## target/debug/weir: a changed line costs seconds, a simulation more
	cargo build --package weir-cli

# As root, where there is no cargo, it takes what `make build` made before.
install: $(if $(shell command -v cargo),build) ## program, Python package, manual pages, completions, licences, below PREFIX
	scripts/build/install-program.sh install

uninstall: ## removes what `make install` with the same PREFIX made, and nothing else
	scripts/build/install-program.sh uninstall

install-gst: ## the GStreamer plugin, for which it installs the Debian packages that are missing, if root
	$(GST_PREFIX) scripts/build/install-gst.sh install

uninstall-gst: ## removes the GStreamer plugin
	$(GST_PREFIX) scripts/build/install-gst.sh uninstall

arena-deps: ## the stacks of `weir arena`, which need Go, Node, Python and Rust
	scripts/build/arena-deps.sh

c: ## libweir for C programs, in target/dist/c
	scripts/build/c-library.sh build

install-c: ## header, libweir.so, libweir.a and weir.pc, below PREFIX
	scripts/build/c-library.sh install

uninstall-c: ## removes what `make install-c` with the same PREFIX made
	scripts/build/c-library.sh uninstall

demo: ## simulate, call, report, with what it installs and builds for that; the last line is the report's path
	scripts/build/demo.sh

check: web ## formats, clippy, and the tests that need neither root nor a browser, of what has changed
	scripts/test/test.sh --check

test: ## installs what is missing; library and lab in virtual time, the pages, and one real call; says what it skipped
	scripts/build/deps.sh --test
	@$(MAKE) --no-print-directory web
	scripts/test/test.sh

test-all: test test-deps npm-deps ## the same, and every other test there is
	scripts/test/test.sh --rest

lint: web ## formats, clippy, shellcheck, ruff and docs without a warning
	scripts/test/lint.sh

format: lab/web/node_modules/.package-lock.json ## writes Rust, TypeScript, shell and Python as lint wants it
	scripts/build/format.sh

docs: ## the book of docs/ in target/book, with its links checked
	scripts/build/docs.sh

draft: ## target/draft: the Internet-Draft of sluice, as text and HTML where the tools are there
	node scripts/release/draft.mjs --build

results: build ## the tables of docs/results, anew, from the commands that they name
	scripts/results/results.mjs

third-party: web ## target/THIRD-PARTY.md: what the program and its reports carry of others, and the licences
	node scripts/release/third-party.mjs

bench: build ## Criterion benches, then speeds as ratios, beside those of peers
	cargo bench --package weir-rtc --bench controllers
	cargo bench --package weir-rtc --bench feedback
	cargo bench --package weir-capi --bench border
	cargo bench --package weir-net --bench bottleneck
	cargo bench --package weir-net --bench wifi
	cargo bench --package weir-net --bench cellular
	cargo bench --package weir-record --bench simulate
	cargo run --profile dist --package weir-cli -- research bench
	scripts/results/bench-peers.sh

clean: ## back to a fresh clone, but for records and reports that you made
	cargo clean
	rm -rf ims/configurations/web/node_modules examples/apps/*/node_modules lab/playwright/node_modules lab/web/dist lab/web/node_modules lab/web/screenshots fuzz/target library/*/target examples/target examples/*/target

lab/web/dist/report.html: lab/web/node_modules/.package-lock.json $(WEB_SOURCES)
	@. scripts/quietly.sh && quietly 'lab/web: npm run build' web sh -c 'cd lab/web && npm run build'

ims-web: ims/configurations/web/node_modules/.package-lock.json ## the web servers of `weir ims up --web`

npm-deps: ims-web examples/apps/janus/node_modules/.package-lock.json examples/apps/peerjs/node_modules/.package-lock.json examples/apps/livekit/node_modules/.package-lock.json lab/playwright/node_modules/.package-lock.json ## the npm packages that tests need besides the viewer's

# npm writes this file last.
%/node_modules/.package-lock.json: %/package-lock.json
	@. scripts/quietly.sh && quietly '$*: npm ci' npm-$(subst /,-,$*) sh -c 'cd $* && npm ci --no-audit --no-fund'
	@touch $@
