# make study   set up .venv and run the study in config.yaml
# make demo    under a minute: three private classifiers on features that lie in the repository; table, figure, ledgers, an attack
# make test    does the installation work, and what a change could break     make test-all   every test
# TORCH=cpu: with any of these, a set-up without CUDA, 1.5 GB instead of 6
# make status  which cells are done, stale or missing, and what a run would refuse (STUDY=FILE: of another study, as with `make study`)
# make compare A=FOLDER B=FOLDER  what changed between two results folders, cell by cell
# make plan STUDY=FILE  what a study of your own images would spend, and whether a model of use is to be expected
# make rehearse STUDY=FILE  the whole study on drawn images: what it takes and says; nothing is spent
# make wipe    list, and then remove, what was made of private records; bundles and the book of what was spent stay (YES=1: ask nothing)
# make release CELL=DATASET/FEATURES/ENTRY/eps=E   what may be published of a cell (docs/own-data.md; STUDY=FILE as above)
# IN=DIR: with study, status and release, results are made in another folder; many may use one clone
# ONLY=NAME[,NAME]: with study, status and paper, these tables and figures and their cells alone
# make paper   all tables and figures in one PDF, results/tables/all.pdf (needs LaTeX; STUDY=FILE: of another study)
# make bench   measure speed                                     make lint   check style and types
# make coverage  run the tests, and list what they never reach    make mutants  are planted faults of privacy caught?
# make test-slurm  install Debian's SLURM (root) and run a study through it
# make record STUDY=FILE KIND=full   take a study's finished cells into workflow/published/measured.csv, for evidence
# make evidence  what became of each number that the papers print: docs/evidence.md, from what was recorded
# make leaderboard  where recorded models stand on the public leaderboard: docs/leaderboard.md, and our lines in its form
# make schemas  after an edit of a method's hyper-parameters: their schema and their table in docs/methods.md
# make house  print how the library is laid out, and whether it is as it shall be
# make lock    resolve envs/*.in to hash-locked lists (needs uv) make clean  remove what a study made

PYTHON ?= python3
CORES ?= all
TORCH ?=
VENV := .venv
BIN := $(VENV)/bin
STUDY ?=
IN ?=
ONLY ?=
PART = $(STUDY) $(if $(IN),--in "$(IN)") $(if $(ONLY),--only $(ONLY))
CELL ?=
KIND ?=
YES ?=
A ?=
B ?=

.PHONY: help study demo status compare plan rehearse wipe release record schemas evidence leaderboard paper test test-rest test-all test-slurm coverage mutants bench lint house lock clean

study: $(VENV)/study.stamp
	@$(BIN)/dpstudy run $(PART) --cores $(CORES)

demo: $(VENV)/study.stamp
	@DPSTUDY_DATA="$(CURDIR)/studies/demo" $(BIN)/dpstudy run studies/demo.yaml $(if $(IN),--in "$(IN)") --cores $(CORES)

status: $(VENV)/study.stamp
	@$(BIN)/dpstudy status $(PART)

compare: $(VENV)/study.stamp  # exit status 1 of the script says that something differs, which is no error of make
	@$(if $(and $(A),$(B)),:,echo "name two results folders: make compare A=results B=../other/results" >&2; exit 2)
	@$(BIN)/dpstudy compare $(if $(A),"$(A)") $(if $(B),"$(B)") || [ $$? -eq 1 ]

plan: $(VENV)/study.stamp
	@$(if $(STUDY),,echo "make plan: which study? such as STUDY=studies/mine.yaml" >&2; exit 1)
	@$(BIN)/dpstudy plan $(STUDY)

rehearse: $(VENV)/study.stamp
	@$(if $(STUDY),,echo "make rehearse: which study? such as STUDY=studies/mine.yaml" >&2; exit 1)
	@$(BIN)/dpstudy rehearse $(STUDY) $(if $(IN),--in "$(IN)") --cores $(CORES)

wipe: $(VENV)/study.stamp
	@$(BIN)/dpstudy wipe $(if $(IN),--in "$(IN)") $(if $(YES),--yes)

release: $(VENV)/study.stamp
	@$(if $(CELL),,echo "make release: which cell? such as CELL=own/scatternet/default/eps=2 STUDY=studies/own-data.yaml" >&2; exit 1)
	@$(BIN)/dpstudy release $(CELL) $(PART) --cores $(CORES)

record: $(VENV)/study.stamp
	@$(if $(KIND),,echo "make record: which kind of numbers? KIND=full, KIND='reduced: WHAT' or KIND='stand-in: FOR WHAT'" >&2; exit 1)
	@$(BIN)/dpstudy record $(STUDY) $(if $(IN),--in "$(IN)") --kind "$(KIND)"

schemas: $(VENV)/study.stamp  # workflow/dpstudy/schemas/methods and a table, from the methods' modules
	@$(BIN)/dpstudy schemas

evidence: $(VENV)/study.stamp  # docs/evidence.md and .csv, from workflow/published/measured.csv
	@$(BIN)/dpstudy evidence

leaderboard: $(VENV)/study.stamp  # docs/leaderboard.md and .yaml, from workflow/published/
	@$(BIN)/dpstudy leaderboard

paper: $(VENV)/study.stamp
	@$(BIN)/dpstudy run $(PART) --target results/tables/all.pdf --cores $(CORES)
	@echo "  results/tables/all.pdf"

help:  # the commands
	@sed -n '/^#/!q; s/^# //p' Makefile

PYTEST := $(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder

test: $(VENV)/dev.stamp  # what is not marked slow (tests/conftest.py): the real workflow on a tiny study is among it
	@$(PYTEST) -m "not slow"

test-rest: $(VENV)/dev.stamp  # what `make test` leaves out
	@$(PYTEST) -m slow

test-all: $(VENV)/dev.stamp
	@$(PYTEST)

test-slurm: $(VENV)/dev.stamp
	@tests/slurm/install.sh && DPSTUDY_SLURM=1 $(BIN)/python -m pytest tests/slurm

coverage: $(VENV)/dev.stamp  # what the tests never reach: a report by file, and pages in htmlcov/
	@$(PYTEST) --cov --cov-report=term:skip-covered --cov-report=html

mutants: $(VENV)/dev.stamp  # the faults of tests/mutants, each in a copy; writes the table of docs/privacy.md
	@$(BIN)/python -m tests.mutants

bench: $(VENV)/dev.stamp
	@$(BIN)/python -m benchmarks

lint: $(VENV)/dev.stamp
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/snakefmt --check Snakefile workflow/rules
	@$(BIN)/snakemake --lint
	@$(BIN)/mypy
	@PYTHONPATH=workflow $(BIN)/lint-imports --no-cache

house: $(VENV)/dev.stamp  # layers and circles, lines of code, paths that are written out
	@$(BIN)/python -m tests.house

$(VENV)/study.stamp: envs/requirements.txt pyproject.toml
	@workflow/setup.sh $(PYTHON) $(VENV) envs/requirements.txt $(TORCH)
	@touch $@

$(VENV)/dev.stamp: $(VENV)/study.stamp envs/requirements-dev.txt
	@workflow/setup.sh $(PYTHON) $(VENV) envs/requirements-dev.txt $(TORCH)
	@touch $@

COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links
lock: $(VENV)/dev.stamp  # releases that stand in the lists stay; --upgrade, or another pin, changes them
	cd envs && PATH="$(abspath $(BIN)):$$PATH" && $(COMPILE) uv.in -o uv.txt && \
	  $(COMPILE) ../pyproject.toml --extra workflow -c pins.in -o requirements.txt && \
	  $(COMPILE) ../pyproject.toml --extra dev -c requirements.txt -o requirements-dev.txt
	for version in 3.11 3.12 3.13; do $(BIN)/uv pip install --quiet --dry-run --require-hashes --python $(BIN)/python \
	  --python-version $$version --target build/none -r envs/requirements-dev.txt || exit 1; done  # can each be installed?

clean:  # all but what secure noise has spent, and what it has made: it would be spent nonetheless
	@if [ -d results ]; then find results -mindepth 1 ! -path results/privacy ! -path results/privacy/spent.jsonl ! -path results/privacy/paid ! -path 'results/privacy/paid/*' -delete; fi
	@rm -rf .snakemake
