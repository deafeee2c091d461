// SPDX-License-Identifier: GPL-2.0-only
//
// A scenario is data: workload x disks x memory x passes, and what is expected of each step (docs/scenarios.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pageout::bench {

struct Disk {
	std::string name;                  ///< the device is /dev/sim<name>
	std::string role;                  ///< "swap", "ext4" or "raw"
	std::string model;                 ///< a name of architecture's disk models
	std::uint64_t bytes = 0;
	std::string scheduler = {};        ///< "": mq-deadline where the model has a queue to schedule
	int priority = -1;                 ///< of swap; -1 leaves it to the kernel
	bool fixed = false;                ///< --disk leaves this one alone
	std::map<std::string, std::string> params; ///< any field of the model
};

struct Setting {
	std::string path;
	std::string value;
	bool optional = false;
};

/// A bound on a number of the record, named by its dotted path ("derived.pages_per_read_request").
struct Bound {
	std::string field;
	std::optional<double> min;
	std::optional<double> max;
};

/// What a step has to show: its status, and bounds on what was measured.
struct Expectation {
	std::string status = "PASS";
	std::vector<Bound> bounds;
};

struct Scenario {
	std::string name;
	std::string description;
	std::filesystem::path file;

	std::uint64_t mem_bytes = 64ULL << 20;
	unsigned cpus = 1;
	unsigned passes = 1;
	unsigned samples = 1;
	unsigned seed = 1;                 ///< fills "{seed}" in argv
	unsigned seconds = 60;             ///< fills "{seconds}" in argv
	std::string lru = "classic";       ///< "classic" or "mglru"
	int page_cluster = 3;
	std::string clock = "virtual";     ///< "virtual" or "host"
	unsigned icount_shift = 0;         ///< an instruction takes 2^shift ns of virtual time
	std::vector<std::string> profiles; ///< of the kernel; none is the measuring kernel

	/// Samples begin at different moments (jitter_us) instead of being the same run again: their spread says how much of a
	/// number is chance.
	bool vary = false;
	std::vector<std::string> argv;     ///< of the workload; "{passes}", "{mem}", "{seed}" and "{seconds}" are filled in
	std::map<std::string, std::string> env;
	std::string fio_job;               ///< a file of fio-jobs/, instead of argv
	std::vector<Disk> disks;
	std::vector<Setting> settings;
	std::vector<std::string> trace;    ///< names of disks under blktrace
	unsigned trace_buffer_kib = 128;     ///< of one buffer; they are kernel memory of the guest, so small is good
	unsigned trace_buffer_count = 8;
	bool probe = true;
	std::uint64_t mailbox_bytes = 256ULL << 20;
	std::vector<std::string> cmdline;        ///< further words of the kernel's command line
	std::vector<std::string> cmdline_remove; ///< words of the bench's own to leave out

	unsigned virtual_limit_s = 3600;   ///< on the guest's clock: a workload that runs longer is a HANG
	unsigned host_timeout_s = 3600;    ///< on the host's clock: TIMEOUT
	unsigned boot_timeout_s = 600;     ///< on the host's clock, up to the guest's first sign of life: NO-BOOT

	/// What a steady pass is made of: passes from this one on, and in them these phases (none named: the whole pass).
	unsigned steady_first_pass = 0;
	std::vector<std::string> steady_phases;

	bool group_kills = false;          ///< OOM kills in memory cgroups are part of the workload

	unsigned needs_step = 0;           ///< base and earlier steps are SKIPPED: they lack what the scenario sets
	std::string needs_accel;           ///< "kvm": SKIPPED where it does not run

	Expectation expect;                          ///< of every step ..
	std::map<std::string, Expectation> expect_step; ///< .. but these

	const Expectation& expected_of(const std::string& step_label) const;
	std::string workload_name() const; ///< "random-dirty", "fio:mmap-dirty", "sh"
	const Disk* main_disk() const;     ///< the first traced one, else the first; nullptr without disks
};

/// What the command line may change.
struct Overrides {
	std::optional<std::string> disk_model;
	std::optional<std::uint64_t> mem_bytes;
	std::optional<unsigned> passes, samples, icount_shift, host_timeout_s, cpus, seconds;
	std::optional<unsigned> seed;
	std::optional<std::string> lru, clock;
	std::vector<std::string> profiles; ///< instead of the scenario's, when not empty
	std::optional<int> page_cluster;
	bool vary = false;
	std::vector<std::string> set; ///< "PATH=VALUE"; a bare name is one of /sys/kernel/mm/pageout
};

/// Reads a scenario. Throws Error with file, line and key.
Scenario load_scenario(const std::filesystem::path& file);
Scenario parse_scenario(const std::string& text, const std::filesystem::path& file);

/// NAME of scenarios/ below `root`, or a file. Throws Error that lists what there is.
std::filesystem::path find_scenario(const std::string& name_or_file, const std::filesystem::path& root);

/// Throws Error where the result makes no sense.
Scenario apply(Scenario scenario, const Overrides& overrides);

/// By how much later than the first a sample's workload begins: 0 without `vary`. Steps that are no multiple of a tick, of a
/// disk's revolution or of each other's.
unsigned jitter_us(const Scenario& scenario, unsigned sample);

/// The workload's arguments with "{passes}" and the like filled in, and with the sample's jitter.
std::vector<std::string> workload_argv(const Scenario& scenario, unsigned sample = 1);

} // namespace pageout::bench
