# Makefile - builds h5mem.so (or .dylib), runs its tests, its demo and its benchmarks.  `make help`
# lists the targets.
#
# Objects live in .build/<variant>/, one folder a compiler and sanitizer, so that builds never mix.
# Sources are found by wildcard.  Each layer is compiled with the include paths of the layers it may
# know, and with no others.
#
# SPDX-License-Identifier: MIT

ifeq ($(origin CC),default)
CC := gcc
endif
AR       ?= ar
CFLAGS   ?= -O2 -g
PYTHON   ?= /usr/bin/python3
CROSS    ?= aarch64-linux-gnu-
SAN      ?=
WERROR   ?=
VARIANT  ?= $(notdir $(firstword $(CC)))$(if $(SAN),-$(subst $(comma),-,$(SAN)))
comma    := ,
B        := .build/$(VARIANT)
SYSTEM   := $(shell uname -s)

WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef $(WERROR)
BASE     := -std=c11 -fPIC -fvisibility=hidden -ffp-contract=off $(WARN)
LIBS     := -lz -lzstd -lm -lpthread
ifeq ($(SYSTEM),Darwin)
BASE     += -D_DARWIN_C_SOURCE $(addprefix -I,$(wildcard /opt/homebrew/include /usr/local/include))
LDFLAGS  += $(addprefix -L,$(wildcard /opt/homebrew/lib /usr/local/lib))
MODULE   := h5mem.dylib
SHARED    = -dynamiclib -install_name @rpath/$(MODULE)
else
BASE     += -D_GNU_SOURCE
MODULE   := h5mem.so
NEEDED   := -Wl,--no-as-needed
SHARED    = -shared $(if $(SAN),,-Wl$(comma)-z$(comma)defs)
endif
ifneq ($(SAN),)
BASE     += -fsanitize=$(SAN) -fno-omit-frame-pointer
BASE     += $(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined)
LDFLAGS  += -fsanitize=$(SAN)
endif

# The layers: what each may include.
INC_hdf5core  := -Ihdf5core
INC_vec       := -Ivec
INC_store     := -Iext/store -Ihdf5core -Ivec
INC_mind      := -Iext/mind $(INC_store)
INC_sql       := -Iext/sql $(INC_mind)
INC_tests     := -Itests/harness $(INC_sql)

objects   = $(patsubst %.c,$(B)/%.o,$(wildcard $(1)/*.c))
OBJ_h5   := $(call objects,hdf5core)
OBJ_vec  := $(call objects,vec)
OBJ_st   := $(call objects,ext/store)
OBJ_mind := $(call objects,ext/mind)
OBJ_sql  := $(call objects,ext/sql)
OBJ_core := $(patsubst $(B)/%,$(B)/core/%,$(OBJ_sql))
OBJ_har  := $(call objects,tests/harness)
HARNESS  := $(B)/libharness.a
ARCHIVES := $(B)/libmind.a $(B)/libstore.a $(B)/libh5core.a $(B)/libvec.a
UNITS    := $(patsubst %.c,$(B)/%,$(wildcard tests/unit/t_*.c))
TOOLS    := $(patsubst %.c,$(B)/%,$(wildcard tests/*/*_tool.c tests/fuzz/fuzz_*.c))
TORTURE  := $(B)/tests/crash/torture_tool
TSAN     := $(patsubst %.c,%,$(shell grep -ls 'pthread_create' tests/unit/t_*.c))
OBJECTS  := $(OBJ_h5) $(OBJ_vec) $(OBJ_st) $(OBJ_mind) $(OBJ_sql) $(OBJ_core) $(OBJ_har) $(UNITS:=.o) $(TOOLS:=.o) \
	    $(call objects,bench) $(call objects,bench/commit) $(call objects,bench/peers) \
	    $(call objects,tests/crash/torture)

.PHONY: all libs demo test test-asan test-tsan torture lint bench bench-peers bench-hdf5 neon static clean help \
        units module need FORCE
.SECONDARY:
.DELETE_ON_ERROR:

all: libs $(MODULE)
libs: $(ARCHIVES)
module: $(B)/$(MODULE)
units: $(UNITS) $(TOOLS) $(TORTURE) $(B)/bench/bench $(B)/bench/commit/commit

# ---- what the goals need: one quick probe, silent where all is there, before anything else

WANTS := build $(filter demo,$(MAKECMDGOALS)) $(if $(filter bench-peers,$(MAKECMDGOALS)),bench)
WANTS += $(if $(filter test% lint static units,$(MAKECMDGOALS)),test)
need:
	@sh .ci/deps $(WANTS)

# ---- compiling and linking; outputs are renamed into place, so that a running host never sees half
# a file

$(B)/flags: FORCE | need
	@mkdir -p $(@D); printf '%s\n' '$(CC) $(BASE) $(CPPFLAGS) $(CFLAGS)' >$@.$$$$; \
	if cmp -s $@.$$$$ $@; then rm -f $@.$$$$; else mv $@.$$$$ $@; fi

compile = @mkdir -p $(@D); echo "CC $<"; \
	$(CC) $(BASE) $(CPPFLAGS) $(CFLAGS) $(1) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@.$$$$ && mv $@.$$$$ $@

define layer
$(B)/$(1)/%.o: $(1)/%.c $(B)/flags
	$$(call compile,$$(INC_$(notdir $(1))))
endef
$(foreach l,hdf5core vec ext/store ext/mind ext/sql tests,$(eval $(call layer,$(l))))
$(B)/core/ext/sql/%.o: ext/sql/%.c $(B)/flags
	$(call compile,$(INC_sql) -DSQLITE_CORE)
$(B)/bench/%.o: bench/%.c $(B)/flags
	$(call compile,-Ibench -Ivec -Ihdf5core -Iext/mind)
$(B)/bench/peers/%.o: bench/peers/%.c $(B)/flags
	$(call compile,-Ibench -Ihdf5core $$(sh bench/peers/find_hdf5.sh --cflags))

$(B)/libh5core.a: $(OBJ_h5)
$(B)/libvec.a: $(OBJ_vec)
$(B)/libmind.a: $(OBJ_mind)
$(B)/libstore.a: $(OBJ_st)
$(HARNESS): $(OBJ_har)
$(ARCHIVES) $(HARNESS): $(B)/flags
	@mkdir -p $(@D); $(AR) rcs $@.$$$$ $(filter %.o,$^) && mv $@.$$$$ $@

$(B)/$(MODULE): $(OBJ_sql) $(ARCHIVES)
	@echo "LD $@"; $(CC) $(SHARED) $(LDFLAGS) -o $@.$$$$ $(OBJ_sql) $(ARCHIVES) $(LIBS) && \
	mv $@.$$$$ $@
$(MODULE): $(B)/$(MODULE) FORCE
	@if cmp -s $< $@; then :; else cp $< $@.$$$$ && mv $@.$$$$ $@; fi

# Unit programs, each with the layers that its name allows: t_h5_*.c and t_vec_*.c with their library alone, t_sql_*.c
# with the SQL layer as a host links it (compiled with SQLITE_CORE, next to SQLite), the others with all libraries.
# Programs that pytest runs: *_tool.c, and the fuzz targets with their driver.
link = @echo "LD $@"; $(CC) $(LDFLAGS) -o $@.$$$$ $(filter %.o %.a,$^) $(1) -lcmocka $(LIBS) && mv $@.$$$$ $@

# Named, so that make takes the rule of t_sql_*.c also while some of these are still to be made.
$(OBJ_core): $(B)/flags

$(B)/tests/unit/t_h5_%: $(B)/tests/unit/t_h5_%.o $(HARNESS) $(B)/libh5core.a
	$(call link)
$(B)/tests/unit/t_vec_%: $(B)/tests/unit/t_vec_%.o $(HARNESS) $(B)/libvec.a
	$(call link)
$(B)/tests/unit/t_sql_%: $(B)/tests/unit/t_sql_%.o $(HARNESS) $(OBJ_core) $(ARCHIVES)
	$(call link,-lsqlite3)
$(B)/tests/unit/t_%: $(B)/tests/unit/t_%.o $(HARNESS) $(ARCHIVES)
	$(call link)
$(B)/tests/crash/torture_tool: $(call objects,tests/crash/torture) $(HARNESS) $(OBJ_core) $(ARCHIVES)
	$(call link,-lsqlite3 -ldl)
$(B)/tests/%_tool: $(B)/tests/%_tool.o $(HARNESS) $(ARCHIVES)
	$(call link)
$(B)/tests/fuzz/fuzz_sql $(B)/tests/fuzz/fuzz_doors: %: %.o $(if $(FUZZER),,$(B)/tests/fuzz/driver.o) $(HARNESS) \
		$(OBJ_core) $(ARCHIVES)
	$(call link,$(FUZZER) -lsqlite3)
$(B)/tests/fuzz/fuzz_%: $(B)/tests/fuzz/fuzz_%.o $(if $(FUZZER),,$(B)/tests/fuzz/driver.o) $(HARNESS) $(ARCHIVES)
	$(call link,$(FUZZER))

# --no-as-needed: sqlite-vec leaves sqrtf to its host
$(B)/bench/bench: $(call objects,bench) $(ARCHIVES)
	@echo "LD $@"; $(CC) $(LDFLAGS) $(NEEDED) -o $@.$$$$ $^ -lsqlite3 $(LIBS) && mv $@.$$$$ $@

BOUT := $(addprefix $(B)/bench/bench_,stat.o gen.o floor.o out.o) $(B)/libh5core.a
$(B)/bench/commit/commit: $(call objects,bench/commit) $(BOUT)
	@echo "LD $@"; $(CC) $(LDFLAGS) -o $@.$$$$ $^ -lsqlite3 $(LIBS) && mv $@.$$$$ $@

$(B)/bench/peers/h5bench: $(call objects,bench/peers) $(BOUT)
	@echo "LD $@"; $(CC) $(LDFLAGS) -o $@.$$$$ $^ -lsqlite3 $$(sh bench/peers/find_hdf5.sh --libs) $(LIBS) && \
	mv $@.$$$$ $@

-include $(OBJECTS:.o=.d)

# ---- running

demo: all
	@sh sql/demo.sh

RUN = $(PYTHON) tests/run --build $(B) --cc "$(CC)" --san "$(SAN)" $(if $(FILTER),--filter "$(FILTER)") \
	$(if $(J),-j $(J))

test: all
	@$(MAKE) --no-print-directory units
	@$(RUN) --module $(MODULE)

test-asan:
	@$(MAKE) --no-print-directory test-san SAN=address,undefined CFLAGS="-O1 -g"
test-tsan:
	@$(MAKE) --no-print-directory test-threads SAN=thread CFLAGS="-O1 -g"

.PHONY: test-san test-threads
test-san: module units
	@$(RUN) --module $(B)/$(MODULE)
test-threads: $(addprefix $(B)/,$(TSAN))
	@$(RUN) --only "$(TSAN)"

# The long forms of tests/crash and tests/fault: LIVES scales them, about an hour at the default.
LIVES ?= 20000
torture: all
	@$(MAKE) --no-print-directory units
	@$(TORTURE) kill drop=1 lives=$(LIVES) seed=$$$$
	@$(TORTURE) power drop=1 lives=$$(($(LIVES) / 4)) seed=$$$$
	@$(TORTURE) fault
	@H5MEM_STATEMENTS=$$(($(LIVES) * 5)) $(RUN) --module $(MODULE) --filter tests/sql/test_model_statements
	@new=$$(sh tests/harness/newest.sh .build/sqlite) && LD_LIBRARY_PATH=$$new H5MEM_STATEMENTS=$$(($(LIVES) * 5)) \
	    $(RUN) --module $(MODULE) --filter tests/sql/test_model_statements
	@H5MEM_SECONDS=60 $(RUN) --module $(MODULE) --filter tests/crash/test_processes

# libFuzzer (clang) for T seconds a target; what it adds to the corpus stays under .build/fuzz.
T ?= 600
FUZZ := $(foreach t,$(notdir $(basename $(wildcard tests/fuzz/fuzz_*.c))),$(if $(findstring $(FILTER),$t),$t))
.PHONY: fuzz fuzz-run
fuzz:
	@$(MAKE) --no-print-directory fuzz-run VARIANT=fuzz CC=clang SAN=fuzzer-no-link,address,undefined \
	    FUZZER=-fsanitize=fuzzer CFLAGS="-O1 -g"
fuzz-run: $(FUZZ:%=$(B)/tests/fuzz/%)
	@at=$(CURDIR)/$(B)/corpus; for t in $(FUZZ); do echo "FUZZ $$t, $(T) s" && mkdir -p $$at/$$t && \
	    ASAN_OPTIONS=quarantine_size_mb=8:detect_leaks=1 $(B)/tests/fuzz/$$t -max_total_time=$(T) -timeout=2 \
	    -rss_limit_mb=256 -verbosity=1 -print_final_stats=1 -artifact_prefix=$$at/ \
	    $$at/$$t $(CURDIR)/tests/fuzz/corpus/$$t >$$at/$$t.log 2>&1 || { tail -40 $$at/$$t.log; exit 1; }; \
	    grep -E '^stat::(number_of_executed|peak)' $$at/$$t.log; done

lint: all
	@$(RUN) --module $(MODULE) --filter tests/lint
neon:
	@$(MAKE) --no-print-directory .build/neon/libvec.a CC=$(CROSS)gcc AR=$(CROSS)ar VARIANT=neon \
	    WERROR=-Werror WANTS=cross

static: $(B)/tests/unit/t_sql_static
	@$(B)/tests/unit/t_sql_static

# SHORT=1: fewer runs, no large tables; LONG=1: also a million rows.  BENCH_OUT=file gets the figures as JSON lines.
FORM := $(if $(SHORT),short,$(if $(LONG),long,normal))
bench: all $(B)/bench/bench
	@sh bench/run.sh $(B) $(MODULE) $(FORM) $(FILTER)
bench-peers: all $(B)/bench/bench $(B)/bench/commit/commit
	@PYTHON=$(PYTHON) sh bench/peers/run.sh $(B) $(MODULE) $(FILTER)
bench-hdf5: all $(B)/bench/peers/h5bench
	@$(B)/bench/peers/h5bench --module $(MODULE) $(if $(FILTER),--filter "$(FILTER)")

quality: all
	@H5MEM_SO=$(abspath $(MODULE)) $(PYTHON) bench/quality/quality.py $(QUALITY)
	@$(if $(QUALITY),,H5MEM_SO=$(abspath $(MODULE)) $(PYTHON) bench/quality/forgetting.py || echo "SKIP forgetting.py")

clean:
	rm -rf .build h5mem.so h5mem.dylib

help:
	@echo "make              $(MODULE) at the root and the static libraries under $(B)"
	@echo "make demo         the guided tour: needs no Python, installs what is missing"
	@echo "make test         every test; FILTER=word J=2 select and spread; last line: N passed, N failed"
	@echo "make test-asan    the same under the address and undefined-behaviour sanitizers"
	@echo "make test-tsan    the unit programs that start threads, under the thread sanitizer"
	@echo "make torture      deaths, power cuts and failures by the thousand; LIVES=20000"
	@echo "make lint         layers, symbols, style      make libs     the engines alone"
	@echo "make fuzz         libFuzzer over every target; FILTER=word T=600 (seconds a target)"
	@echo "make bench        our rows; SHORT=1, LONG=1   make bench-peers   ours and the peers in alternation"
	@echo "make quality      does a search find what was asked for: LoCoMo, LongMemEval, beside FTS5"
	@echo "make neon         cross-compile vec/ for arm64     make static   prove that -DSQLITE_CORE links"
	@echo "make clean        remove .build and the module"
	@echo "Variables: CC CFLAGS WERROR=-Werror SAN=address,undefined VARIANT=name PYTHON H5MEM_DATA"
