// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/compare.h"
#include "pageout/bench/error.h"
#include "pageout/bench/kernels.h"
#include "pageout/bench/process.h"
#include "pageout/bench/progress.h"
#include "pageout/bench/run.h"
#include "pageout/bench/scenario.h"
#include "pageout/bench/text.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

namespace {

using namespace pageout::bench;
namespace fs = std::filesystem;

void print(const std::string& text)
{
	if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
		throw Error("cannot write to standard output");
}

std::uint64_t size_option(const std::string& text)
{
	return parse_size(text);
}

// ---- steps ----

void add_steps(CLI::App& app, std::function<int()>& action)
{
	auto* command = app.add_subcommand("steps", "List the steps: controls, base, and one after each patch");
	command->footer("Example:\n  pageout-bench steps");
	command->callback([&action] {
		action = [] {
			std::string out;
			for (const auto& step : Kernels(project_root()).steps())
				out += fmt::format("{:<24} {}\n", step.name, step.subject);
			print(out);
			return 0;
		};
	});
}

// ---- build ----

struct BuildArguments {
	std::string steps = "base,full";
	BuildOptions options;
};

void add_build_options(CLI::App* command, BuildOptions& options)
{
	command->add_option("--linux", options.linux_dir, "A kernel tree of yours instead of the packaged source; it is not changed")->type_name("DIR")->check(CLI::ExistingDirectory);
	command->add_option("--config", options.fragments, "A configuration fragment to merge; may be repeated")->type_name("FRAGMENT")->allow_extra_args(false)->check(CLI::ExistingFile);
	command->add_option("--profile", options.profiles, "A kernel profile of scripts/profiles; may be repeated")->type_name("NAME")->allow_extra_args(false);
}

void add_build(CLI::App& app, std::function<int()>& action)
{
	auto arguments = std::make_shared<BuildArguments>();
	auto* command = app.add_subcommand("build", "Build kernels and modules of steps, as far as they are not in the cache");
	command->add_option("--steps", arguments->steps, "Which steps, like base,3,5-7,full,control:ra-unplugged")->type_name("LIST")->capture_default_str();
	add_build_options(command, arguments->options);
	command->footer("Example:\n  pageout-bench build --steps base,full\n  pageout-bench build --steps base --linux ~/linux");
	command->callback([&action, arguments] {
		action = [arguments] {
			const Kernels kernels(project_root(), arguments->options);
			for (const auto& request : resolve_steps(arguments->steps, kernels.steps())) {
				const Kernel kernel = kernels.build(request.kernel);
				print(fmt::format("{:<24} {} {}\n", request.label, kernel.release, kernel.bzimage.string()));
			}
			return 0;
		};
	});
}

// ---- run ----

struct RunArguments {
	std::string scenario, steps = "base,full", mem, out;
	std::string disk, lru, clock;
	unsigned passes = 0, samples = 0, shift = 0, timeout = 0, cpus = 0, seconds = 0;
	unsigned seed = 0;
	int page_cluster = 0;
	BuildOptions build;
	Overrides overrides;
	RunOptions options;
};

int run(RunArguments& a, const CLI::App& command)
{
	const fs::path root = project_root();
	Overrides& o = a.overrides;
	const auto given = [&](const char* name) { return command.count(name) > 0; };
	if (given("--disk"))
		o.disk_model = a.disk;
	if (given("--mem"))
		o.mem_bytes = size_option(a.mem);
	if (given("--passes"))
		o.passes = a.passes;
	if (given("--samples"))
		o.samples = a.samples;
	if (given("--cpus"))
		o.cpus = a.cpus;
	if (given("--seed"))
		o.seed = a.seed;
	if (given("--seconds"))
		o.seconds = a.seconds;
	if (given("--shift"))
		o.icount_shift = a.shift;
	if (given("--timeout"))
		o.host_timeout_s = a.timeout;
	if (given("--lru"))
		o.lru = a.lru;
	if (given("--clock"))
		o.clock = a.clock;
	if (given("--page-cluster"))
		o.page_cluster = a.page_cluster;
	o.profiles = a.build.profiles;

	const Scenario scenario = apply(load_scenario(find_scenario(a.scenario, root)), o);
	const Disk* disk = scenario.main_disk();
	a.options.out = a.out.empty() ? fs::path("results") / (scenario.name + (disk ? "-" + disk->model : "")) : fs::path(a.out);
	a.options.linux_dir = a.build.linux_dir;
	a.options.fragments = a.build.fragments;

	Progress progress;
	const auto results = run_scenario(root, scenario, a.steps, a.options, progress);
	std::string out;
	bool all = true;
	for (const auto& result : results) {
		all &= result.as_expected;
		out += fmt::format("{:<24} {} {:<16} {}{}\n", result.step, result.sample, result.status, result.folder.string(),
				   result.as_expected ? "" : "  NOT AS EXPECTED");
	}
	print(out);
	return all ? 0 : 1;
}

void add_run(CLI::App& app, std::function<int()>& action)
{
	auto a = std::make_shared<RunArguments>();
	auto* command = app.add_subcommand("run", "Run a scenario on steps; builds what is missing");
	command->add_option("--scenario", a->scenario, "A name of scenarios/ or a file")->required()->type_name("NAME|FILE");
	command->add_option("--steps", a->steps, "Which steps, like base,3,5-7,full,control:ra-unplugged")->type_name("LIST")->capture_default_str();
	command->add_option("--disk", a->disk, "Disk model instead of the scenario's")->type_name("MODEL");
	command->add_option("--mem", a->mem, "Memory of the kernel under test")->type_name("SIZE");
	command->add_option("--passes", a->passes, "Passes of the workload")->check(CLI::Range(1, 1000));
	command->add_option("--samples", a->samples, "Runs of each step")->check(CLI::Range(1, 1000));
	command->add_option("--cpus", a->cpus, "Virtual CPUs; in virtual time they take turns")->type_name("N")->check(CLI::Range(1, 8));
	command->add_option("--seed", a->seed, "Of the workload's choices, where its argv has {seed}")->type_name("N");
	command->add_option("--seconds", a->seconds, "Of the workload, where its argv has {seconds}")->type_name("S")->check(CLI::Range(1, 1000000));
	command->add_flag("--vary", a->overrides.vary, "Samples begin at different moments: their spread says how much of a number is chance");
	command->add_option("--lru", a->lru, "Which LRU")->check(CLI::IsMember({"classic", "mglru"}));
	command->add_option("--page-cluster", a->page_cluster, "vm.page-cluster")->check(CLI::Range(0, 12));
	command->add_option("--clock", a->clock, "virtual: exact and repeatable; host: real time, several samples")->check(CLI::IsMember({"virtual", "host"}));
	command->add_option("--accel", a->options.accel, "Accelerator for the host clock")->check(CLI::IsMember({"auto", "tcg", "kvm"}))->capture_default_str();
	command->add_option("--shift", a->shift, "Virtual time: an instruction takes 2^N ns")->type_name("N")->check(CLI::Range(0, 10));
	command->add_option("--timeout", a->timeout, "Host seconds after which a run is a TIMEOUT")->type_name("S")->check(CLI::Range(1, 1000000));
	command->add_option("--set", a->overrides.set, "Write VALUE to PATH before the run (a bare name: in /sys/kernel/mm/pageout); may be repeated")->type_name("PATH=VALUE")->allow_extra_args(false);
	command->add_option("--jobs", a->options.jobs, "Runs at the same time [as many as CPUs in virtual time, else 1]")->type_name("N")->check(CLI::Range(1, 64));
	command->add_flag("--resume", a->options.resume, "Keep runs that are there already and were made from the same inputs");
	command->add_option("--out", a->out, "Where results go [results/SCENARIO-DISK]")->type_name("DIR");
	add_build_options(command, a->build);
	command->footer("Results are DIR/STEP/SAMPLE/record.json with trace, console and more beside it. Exits 0 when every run came to\n"
			"what its scenario expects of it.\n\nExample:\n"
			"  pageout-bench run --scenario random-dirty --steps base,full --disk ata-2005\n"
			"  pageout-bench run --scenario anon-cycle --steps full --set cluster_pages=64 --out results/64");
	command->callback([&action, a, command] { action = [a, command] { return run(*a, *command); }; });
}

// ---- compare ----

struct CompareArguments {
	std::vector<std::string> sources;
	std::string format = "text";
	bool identical = false;
};

std::vector<LoadedRecord> load_all(const std::vector<std::string>& sources)
{
	std::vector<LoadedRecord> records;
	for (unsigned i = 0; i < sources.size(); ++i)
		for (auto& record : load_records(sources[i], i))
			records.push_back(std::move(record));
	return records;
}

int compare(const CompareArguments& a)
{
	if (a.identical) {
		if (a.sources.size() != 2)
			throw Error("--identical takes two records (or their folders)", 2);
		const std::string difference = first_difference(a.sources[0], a.sources[1]);
		print(difference.empty() ? "identical, host times apart\n" : difference + "\n");
		return difference.empty() ? 0 : 1;
	}
	const Json comparison = compare_records(load_all(a.sources), a.sources);
	if (a.format == "json")
		print(comparison.dump(1, '\t') + "\n");
	else
		print(a.format == "md" ? comparison_markdown(comparison) : comparison_text(comparison));
	if (comparison["tables"].empty())
		throw Error("nothing to compare: no record is a PASS");
	if (!comparison["left_out"].empty())
		throw Error(fmt::format("{} of the records are no PASS and are left out", comparison["left_out"].size()));
	return 0;
}

void add_compare(CLI::App& app, std::function<int()>& action)
{
	auto a = std::make_shared<CompareArguments>();
	auto* command = app.add_subcommand("compare", "Table of records: a column a step, ratios beside absolutes");
	command->add_option("records", a->sources, "Records, or folders of records")->required()->type_name("RECORD|DIR")->expected(1, 26);
	command->add_option("--format", a->format, "Format of the table")->check(CLI::IsMember({"text", "md", "json"}))->capture_default_str();
	command->add_flag("--identical", a->identical, "Only say whether two runs are the same to the byte, host times apart");
	command->footer("One folder gives a table of its steps; two put theirs side by side, A and B. Only PASS enters; exits 1 when anything\n"
			"was left out.\n\nExample:\n"
			"  pageout-bench compare results/random-dirty-ata-2005\n"
			"  pageout-bench compare results/x/base/1 results/x/full/1 --format md");
	command->callback([&action, a] { action = [a] { return compare(*a); }; });
}

// ---- report ----

void add_report(CLI::App& app, std::function<int()>& action)
{
	auto folder = std::make_shared<std::string>();
	auto* command = app.add_subcommand("report", "Write report.html (tables and plots, self-contained) and report.md into DIR");
	command->add_option("folder", *folder, "Folder of records")->required()->type_name("DIR");
	command->footer("Example:\n  pageout-bench report results/bench");
	command->callback([&action, folder] {
		action = [folder] {
			const fs::path dir = *folder;
			const Json comparison = compare_records(load_records(dir, 0), {*folder});
			if (comparison["tables"].empty())
				throw Error(fmt::format("{}: nothing to report: no record is a PASS", *folder));
			write_file_atomically(dir / "comparison.json", comparison.dump(1, '\t') + "\n");
			write_file_atomically(dir / "report.md", "<!-- SPDX-License-Identifier: GPL-2.0-only -->\n# pageout: what each step changes\n\n" + comparison_markdown(comparison));
			capture({"/usr/bin/python3", (project_root() / "scripts" / "report.py").string(), "--comparison", (dir / "comparison.json").string(), "--out",
				 (dir / "report.html").string()},
				"scripts/report.py");
			print(fmt::format("{}\n{}\n", (dir / "report.html").string(), (dir / "report.md").string()));
			if (!comparison["left_out"].empty())
				throw Error(fmt::format("{} of the records are no PASS and are left out", comparison["left_out"].size()));
			return 0;
		};
	});
}

// ---- selftest-control ----

void add_selftest(CLI::App& app, std::function<int()>& action)
{
	auto folder = std::make_shared<std::string>();
	auto* command = app.add_subcommand("selftest-control", "Can the bench see what is known? Readahead's plug (Linux 3.6) taken away must show");
	command->add_option("folder", *folder, "Folder with runs of base and control:ra-unplugged on anon-cycle")->required()->type_name("DIR");
	command->footer("In 2012 a plug around swap readahead cut read dispatches; control:ra-unplugged takes it away again. A bench that does\n"
			"not see at least 3 times more read dispatches a page then is blind, and exits 1.\n\nExample:\n"
			"  pageout-bench run --scenario anon-cycle --steps control:ra-unplugged,base --out results/control\n"
			"  pageout-bench selftest-control results/control");
	command->callback([&action, folder] {
		action = [folder] {
			const ControlCheck check = check_control(load_records(*folder, 0));
			if (check.control > 0)
				print(fmt::format("read dispatches a page read: {:.3f} without the plug (control:ra-unplugged), {:.3f} with it (base): {:.1f} times fewer\n",
						  check.control, check.base, check.ratio));
			if (!check.sees)
				throw Error(fmt::format("the bench is BLIND: {}; do not believe its other numbers", check.reason));
			print("the bench sees it\n");
			return 0;
		};
	});
}

} // namespace

int main(int argc, char** argv)
{
	CLI::App app{"Runs swap workloads on kernels of the pageout series under QEMU, in virtual time, and compares what they did.", "pageout-bench"};
	std::function<int()> action;
	app.set_version_flag("--version", std::string("pageout-bench ") + PAGEOUT_VERSION);
	app.require_subcommand(1);
	app.footer("Example:\n  pageout-bench run --scenario random-dirty --steps base,full && pageout-bench compare results/random-dirty-ata-2005");
	add_steps(app, action);
	add_build(app, action);
	add_run(app, action);
	add_compare(app, action);
	add_report(app, action);
	add_selftest(app, action);

	try {
		app.parse(argc, argv);
	} catch (const CLI::ParseError& error) {
		return app.exit(error) ? 2 : 0;
	}
	try {
		const InterruptScope interrupts;
		return action();
	} catch (const Error& error) {
		fmt::print(stderr, "pageout-bench: {}\n", error.what());
		return error.exit_status();
	} catch (const std::exception& error) {
		fmt::print(stderr, "pageout-bench: {}\n", error.what());
		return 1;
	}
}
