// SPDX-License-Identifier: GPL-2.0-only
#include <cstdio>
#include <ctime>
#include <map>
#include <string>

#include <CLI/CLI.hpp>

#include "fire.h"
#include "pageout/size.h"
#include "report.h"
#include "workloads.h"

namespace {

using namespace pageout::load;

constexpr const char *footer =
	"Prints JSON lines: start, phase, unit, pass, stalls, end; times are nanoseconds of CLOCK_MONOTONIC. Every page's\n"
	"content is a function of its number and the pass that wrote it, and is verified when it is read back and before\n"
	"it is dirtied again; a wrong byte prints a corruption event.\n"
	"Exit status: 0 done, 1 failed, 2 usage, 3 corruption, 4 a worker hangs.\n\n"
	"Example: two passes over 96 MiB, dirtied in a random order and read in address order:\n"
	"    pageout-load random-dirty --bytes 96M --passes 2\n"
	"Example: eight processes of 20 MiB that dirty 8 pages each by turns:\n"
	"    pageout-load interleave --processes 8 --bytes-each 20M --batch 8";

CLI::Validator size_transform(std::uint64_t least)
{
	return CLI::Validator(
		[least](std::string &text) -> std::string {
			const auto bytes = parse_size(text);
			if (!bytes || *bytes < least || *bytes > std::uint64_t{1} << 46)
				return "\"" + text + "\" is not a size such as 4096, 64K, 96M or 1G";
			text = std::to_string(*bytes);
			return {};
		},
		"SIZE");
}

struct Commands {
	Options options;
	std::string verify = "full";
	std::string provoke;

	CLI::App *add(CLI::App &app, const char *name, const char *description)
	{
		auto *command = app.add_subcommand(name, description);
		command->add_option("--passes", options.passes, "passes")->check(CLI::Range(1, 1'000'000))->capture_default_str();
		command->add_option("--seed", options.seed, "of contents and random orders")->capture_default_str();
		command->add_option("--verify", verify, "fill and verify whole pages, or their first word only")
			->check(CLI::IsMember({"full", "word"}))
			->capture_default_str();
		command->add_option("--wait-us", options.wait_us,
				    "microseconds to wait first: the same work from another moment on")
			->check(CLI::Range(0, 1'000'000'000))
			->capture_default_str();
		command->add_option("--provoke", provoke,
				    "a fault on purpose: corrupt-page=N, fail, hang, panic, oom")
			->group("");
		return command;
	}

	void size(CLI::App *command, const char *name, std::uint64_t &bytes, const char *otherwise, const char *description)
	{
		command->add_option(name, bytes, description)->transform(size_transform(1))->default_str(otherwise);
	}

	void thp(CLI::App *command)
	{
		command->add_flag("--thp", options.huge_pages, "ask for transparent huge pages (otherwise they are refused)");
	}

	void apply()
	{
		options.whole_pages = verify == "full";
		static const std::map<std::string, Provoke> faults = {{"fail", Provoke::fail},
								      {"hang", Provoke::hang},
								      {"panic", Provoke::panic},
								      {"oom", Provoke::oom}};
		const std::string corrupt = "corrupt-page=";
		if (provoke.empty())
			return;
		if (const auto at = faults.find(provoke); at != faults.end()) {
			options.provoke = at->second;
			return;
		}
		const auto page = provoke.starts_with(corrupt) ? parse_size(provoke.substr(corrupt.size())) : std::nullopt;
		if (!page)
			throw CLI::ValidationError("--provoke", "\"" + provoke + "\" is not corrupt-page=N, fail, hang, panic or oom");
		options.provoke = Provoke::corrupt_page;
		options.provoke_page = *page;
	}
};

} // namespace

int main(int argc, char **argv)
{
	Commands commands;
	Options &options = commands.options;
	void (*run)(const Options &) = nullptr;

	CLI::App app("Workloads for page-out and swap-in that verify every page they read back.", "pageout-load");
	app.set_version_flag("--version", "pageout-load " PAGEOUT_VERSION);
	app.footer(footer);
	app.require_subcommand(1);

	std::uint64_t unit = 0, cycle = 0, random = 0, each = 0, hot = 0, held = 0, fit = 0, shared = 0;
	std::string file_dir = ".", tmpfs_dir = "/tmp";
	for (const bool tmpfs : {false, true}) {
		auto *command = commands.add(app, tmpfs ? "mmap-tmpfs" : "mmap-file",
					     tmpfs ? "mmap-file on a tmpfs, whose pages go to swap"
						   : "per pass and unit of a file: mmap, dirty every page, munmap");
		command->add_option("--dir", tmpfs ? tmpfs_dir : file_dir, "where the file is made")->capture_default_str();
		commands.size(command, "--bytes", unit, "16M", "of one unit");
		command->add_option("--units", options.units, "units of the file")->check(CLI::Range(1, 1'000'000))->capture_default_str();
		command->add_flag("--keep", options.keep_file, "leave the file when done");
		command->callback([&, tmpfs] {
			options.bytes = unit ? unit : 16 << 20;
			options.directory = tmpfs ? tmpfs_dir : file_dir;
			run = tmpfs ? [](const Options &o) { run_mapped_file(o, true); }
				    : [](const Options &o) { run_mapped_file(o, false); };
		});
	}
	{
		auto *command = commands.add(app, "anon-cycle", "dirty every page of anonymous memory in address order, pass after pass");
		commands.size(command, "--bytes", cycle, "160M", "of memory");
		commands.thp(command);
		command->callback([&] {
			options.bytes = cycle ? cycle : 160 << 20;
			run = [](const Options &o) { run_cycle(o, "anon-cycle"); };
		});
	}
	{
		auto *command = commands.add(app, "random-dirty", "dirty in a random order, then read in address order");
		commands.size(command, "--bytes", random, "96M", "of memory");
		commands.thp(command);
		command->callback([&] {
			options.bytes = random ? random : 96 << 20;
			run = run_random_dirty;
		});
	}
	{
		auto *command = commands.add(app, "interleave", "several processes that dirty their own memory by turns");
		command->add_option("--processes", options.processes, "processes")->check(CLI::Range(1, 1000))->capture_default_str();
		commands.size(command, "--bytes-each", each, "20M", "of each process's memory");
		command->add_option("--batch", options.batch_pages, "pages a turn")->check(CLI::Range(1, 1'000'000))->capture_default_str();
		command->add_flag("--free", options.free_turns, "yield after a turn instead of handing it on: whoever waits is overtaken");
		commands.thp(command);
		command->callback([&] {
			options.bytes = each ? each : 20 << 20;
			run = run_interleave;
		});
	}
	{
		auto *command = commands.add(app, "zipf", "read and write pages of which a few are hot (Zipf's law)");
		commands.size(command, "--bytes", hot, "96M", "of memory");
		command->add_option("--theta", options.theta, "exponent: larger is hotter")->check(CLI::Range(0.01, 100.0))->capture_default_str();
		command->add_option("--ops", options.operations, "operations a pass")->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))->capture_default_str();
		command->add_option("--write-percent", options.write_percent, "of the operations")->check(CLI::Range(0, 100))->capture_default_str();
		commands.thp(command);
		command->callback([&] {
			options.bytes = hot ? hot : 96 << 20;
			run = run_zipf;
		});
	}
	{
		auto *command = commands.add(app, "alloc-steady",
					     "allocate at a steady rate, verify and free the oldest, report how long allocations stall");
		commands.size(command, "--bytes", held, "96M", "held at any time");
		commands.size(command, "--chunk", options.chunk_bytes, "64K", "of one allocation");
		command->add_option("--allocations", options.allocations, "a pass")->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32))->capture_default_str();
		command->add_option("--interval-us", options.interval_us, "microseconds from one allocation to the next")->check(CLI::Range(0, 1'000'000'000))->capture_default_str();
		commands.thp(command);
		command->callback([&] {
			options.bytes = held ? held : 96 << 20;
			run = run_alloc_steady;
		});
	}
	{
		auto *command = commands.add(app, "free-shared", "MADV_FREE of memory that a forked child shares, which must keep its own");
		commands.size(command, "--bytes", shared, "1M", "of memory");
		commands.size(command, "--pressure", options.pressure_bytes, "60M", "of other memory that is dirtied afterwards, each pass");
		command->callback([&] {
			options.bytes = shared ? shared : 1 << 20;
			run = run_free_shared;
		});
	}
	{
		auto *command = commands.add(app, "touch-fit", "anon-cycle with memory that fits: the same work without pressure");
		commands.size(command, "--bytes", fit, "16M", "of memory");
		commands.thp(command);
		command->callback([&] {
			options.bytes = fit ? fit : 16 << 20;
			run = [](const Options &o) { run_cycle(o, "touch-fit"); };
		});
	}

	FireOptions fire;
	bool burns = false;
	{
		auto *command = app.add_subcommand("fire", "use memory in every way while the machine is turned over, and verify every byte");
		command->add_option("--seed", fire.seed, "of all choices: the same seed makes the same ones")->capture_default_str();
		command->add_option("--seconds", fire.seconds, "of work, before everything is verified once more")->check(CLI::Range(1, 1'000'000))->capture_default_str();
		commands.size(command, "--bytes", fire.bytes, "64M", "of all workers' memory");
		command->add_option("--stall-s", fire.stall_seconds, "seconds without a step after which a worker hangs")->check(CLI::Range(1, 100'000))->capture_default_str();
		command->add_flag("--machine", fire.machine,
				  "change the machine as well: swap areas, CPUs, switches of the kernel, memory cgroups, failing disks and\n"
				  "allocations. In a guest only; without it the workers touch their own memory alone");
		command->add_option("--roles", fire.roles, "only these")->delimiter(',');
		command->add_option("--without", fire.without, "but not these")->delimiter(',');
		command->add_option("--swap", fire.swaps, "a device to switch on and off as swap; its contents are lost; may be repeated")->allow_extra_args(false);
		command->add_option("--dir", fire.directories, "a folder for files and swap files; may be repeated")->allow_extra_args(false);
		command->add_option("--lossy", fire.lossy, "a modelled disk (its name) whose writes may fail: of swap only; may be repeated")->allow_extra_args(false);
		command->add_flag("--read-errors", fire.read_errors,
				  "their reads fail too: who needs what cannot be read gets SIGBUS, which is counted, and starts anew");
		command->add_option("--corrupt-after", fire.corrupt_after, "a wrong byte on purpose, after N rounds")->group("");
		command->add_option("--hang-after", fire.hang_after, "a hanging worker on purpose, after N rounds")->group("");
		command->callback([&] { burns = true; });
	}

	try {
		app.parse(argc, argv);
		commands.apply();
	} catch (const CLI::ParseError &error) {
		return app.exit(error) == 0 ? 0 : 2;
	}

	try {
		if (options.wait_us) {
			timespec left = {time_t(options.wait_us / 1'000'000), long(options.wait_us % 1'000'000 * 1000)};
			while (nanosleep(&left, &left) != 0)
				;
		}
		if (burns) {
			fire.bytes = fire.bytes ? fire.bytes : 64 << 20;
			report_end(run_fire(fire));
			return 0;
		}
		run(options);
		report_end(verified_pages());
		return 0;
	} catch (const Corruption &corruption) {
		report_corruption(corruption);
		return 3;
	} catch (const ReportedCorruption &) {
		return 3;
	} catch (const WorkerHung &) {
		return 4;
	} catch (const std::exception &error) {
		std::fprintf(stderr, "pageout-load: %s\n", error.what());
		return 1;
	}
}
