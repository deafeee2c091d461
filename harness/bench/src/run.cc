// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/run.h"

#include "pageout/bench/error.h"
#include "pageout/bench/guest_memory.h"
#include "pageout/bench/models.h"
#include "pageout/bench/process.h"
#include "pageout/bench/text.h"

#include "pageout/job.h"
#include "pageout/mailbox.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <exception>
#include <mutex>
#include <thread>

#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace pageout::bench {

namespace fs = std::filesystem;

namespace {

/// The folder of one run: made under a hidden name, and moved to its place when it is complete.
class RunFolder {
public:
	RunFolder(const fs::path& out, const std::string& step, unsigned sample) : final_(out / step / std::to_string(sample))
	{
		std::error_code error;
		fs::create_directories(final_.parent_path(), error);
		if (error)
			throw Error(fmt::format("{}: cannot make the folder: {}", final_.parent_path().string(), error.message()));
		remove_leftovers();
		part_ = final_.parent_path() / fmt::format(".{}.part-{}", sample, ::getpid());
		fs::remove_all(part_, error);
		fs::create_directory(part_, error);
		if (error)
			throw Error(fmt::format("{}: cannot make the folder: {}", part_.string(), error.message()));
	}
	~RunFolder()
	{
		std::error_code error;
		if (!part_.empty())
			fs::remove_all(part_, error);
	}
	RunFolder(const RunFolder&) = delete;
	RunFolder& operator=(const RunFolder&) = delete;

	const fs::path& part() const { return part_; }
	const fs::path& place() const { return final_; }

	/// Takes the place of an earlier run of the same step and sample. Another bench may do the same at the same time:
	/// the one that comes last wins, whole.
	void publish()
	{
		const fs::path old = part_.string() + "-old";
		std::error_code error, ignored;
		for (int attempt = 0; attempt < 10; ++attempt) {
			fs::rename(final_, old, ignored);
			fs::rename(part_, final_, error);
			fs::remove_all(old, ignored);
			if (!error) {
				part_.clear();
				return;
			}
		}
		throw Error(fmt::format("{}: cannot be put in place: {}", final_.string(), error.message()));
	}

private:
	/// What a killed run left behind.
	void remove_leftovers() const
	{
		std::error_code error;
		for (const auto& entry : fs::directory_iterator(final_.parent_path(), error)) {
			const std::string name = entry.path().filename();
			const auto mark = name.find(".part-");
			if (name.front() != '.' || mark == std::string::npos)
				continue;
			const long pid = std::strtol(name.c_str() + mark + 6, nullptr, 10);
			if (pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)
				fs::remove_all(entry.path(), error);
		}
	}

	fs::path final_, part_;
};

/// Text that other programs wrote may hold anything; the record stays JSON.
std::string dump(const Json& record)
{
	return record.dump(1, '\t', false, Json::error_handler_t::replace) + "\n";
}

std::string timestamp()
{
	return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

/// The name of the newest frame in a mailbox that is still being written.
std::string newest_frame(std::span<const std::byte> region)
{
	try {
		const auto frames = mailbox::read(region);
		return frames.empty() ? "" : frames.back().name;
	} catch (const mailbox::FormatError&) {
		return ""; // caught in the middle of a frame's writing; the real reading comes at the end
	}
}

std::string state_of(const std::string& frame)
{
	if (frame.empty())
		return "booting";
	if (frame == "trace" || frame.ends_with(".before"))
		return "workload running";
	if (frame.ends_with(".after") || frame == "dmesg" || frame == "result.json")
		return "collecting";
	return "setting up";
}

struct Plan {
	fs::path out;
	fs::path qemu;
	Accel accel;
	RunIdentity identity;
	Layout layout;
	std::string linux_dir;
	std::string task; ///< its name in the progress
};

GuestCommand symbolic_names()
{
	return {"{qemu}", "{bzimage}", "{initramfs}", "{memory}", "{console}"};
}

std::uint64_t likely_bytes(const Plan& plan)
{
	std::uint64_t bytes = plan.layout.mem_bytes + plan.layout.prog.bytes + plan.layout.boot.bytes;
	for (const auto& disk : plan.layout.disks)
		bytes += disk.bytes;
	return bytes + (64ULL << 20);
}

RunResult result_of(const Plan& plan, const Json& record, const fs::path& folder)
{
	RunResult result;
	result.step = plan.identity.step.label;
	result.sample = plan.identity.sample;
	result.status = record.value("status", "NO-RESULT");
	result.reason = record.value("reason", "");
	result.folder = folder;
	for (const auto& check : record.value("expectations", Json::array()))
		if (!check.value("met", false))
			result.unmet.push_back(fmt::format("{} is {} and has to lie in [{}, {}]", check["field"].get<std::string>(), check["value"].dump(),
							   check["min"].dump(), check["max"].dump()));
	result.as_expected = result.status == plan.identity.scenario.expected_of(result.step).status && result.unmet.empty();
	return result;
}

void write_stream(const fs::path& folder, const std::string& name, const RunOutput& output, const std::string& frame)
{
	if (const auto found = output.frames.find(frame); found != output.frames.end())
		write_file_atomically(folder / name, found->second);
}

RunOutput run_guest(const Plan& plan, const fs::path& folder, Progress& progress, std::vector<std::string>& real_command, fs::path& memory_folder)
{
	const RunIdentity& id = plan.identity;
	const Scenario& s = id.scenario;
	const Layout& layout = plan.layout;

	GuestMemory memory(layout.total_bytes, likely_bytes(plan));
	memory_folder = memory.folder();
	const auto job = job::encode(id.job.dump());
	if (job.size() > layout.job.bytes)
		throw Error(fmt::format("{}: the job's text has {} bytes, more than its region: fewer settings, please", s.name, job.size()), 2);
	memory.write(layout.job.phys, job);
	memory.write_file(layout.prog.phys, id.programs.image, layout.prog.bytes);

	const fs::path console = folder / "console.log";
	real_command = qemu_argv(s, layout, id.accel,
				 {plan.qemu.string(), id.kernel.bzimage.string(), id.kernel.initramfs.string(),
				  fmt::format("/proc/self/fd/{}", memory.fd()), console.string(),
				  s.clock == "virtual" ? turns_library().string() : std::string()});
	const auto mailbox = memory.bytes(layout.out.phys, layout.out.bytes);
	const auto newest = [&] { return newest_frame(mailbox); };

	RunOutput output;
	output.end = run_emulator(real_command, folder / "qemu.log", {memory.fd()}, std::chrono::seconds(s.boot_timeout_s),
				  std::chrono::seconds(s.host_timeout_s), [&] { return !newest().empty(); },
				  [&] { progress.update(plan.task, state_of(newest())); });
	try {
		output.frames = mailbox::join(mailbox::read(mailbox));
	} catch (const mailbox::FormatError& error) {
		output.mailbox_damage = error.what();
	}
	if (fs::exists(console))
		output.console = read_file(console);
	return output;
}

Json host_json(const Plan& plan, const std::string& started, const GuestEnd& end, const std::vector<std::string>& real_command, const fs::path& memory_folder)
{
	utsname name = {};
	::uname(&name);
	return {{"started", started},
		{"wall_s", end.wall_s},
		{"emulator_exit", end.how == GuestEnd::How::exited ? Json(end.code) : Json(nullptr)},
		{"kernel", fmt::format("{} {} {}", name.sysname, name.release, name.machine)},
		{"cpus", std::thread::hardware_concurrency()},
		{"accel_finding", plan.accel.finding},
		{"qemu_command", shell_line(real_command)},
		{"memory_folder", memory_folder.string()},
		{"linux", plan.linux_dir.empty() ? Json(nullptr) : Json(plan.linux_dir)}};
}

RunResult run_one(const Plan& plan, Progress& progress)
{
	const std::string started = timestamp();
	RunFolder folder(plan.out, plan.identity.step.label, plan.identity.sample);
	progress.update(plan.task, "starting");

	std::vector<std::string> real_command;
	fs::path memory_folder;
	const RunOutput output = run_guest(plan, folder.part(), progress, real_command, memory_folder);
	Outcome outcome = evaluate(plan.identity, output);
	outcome.record["host"] = host_json(plan, started, output.end, real_command, memory_folder);

	for (const auto& [cpu, records] : outcome.trace.cpus)
		write_file_atomically(folder.part() / fmt::format("trace.blktrace.{}", cpu), records);
	write_stream(folder.part(), "fio.json", output, "fio.json");
	write_stream(folder.part(), "workload.out", output, "workload.out");
	write_stream(folder.part(), "workload.err", output, "workload.err");
	write_stream(folder.part(), "dmesg.log", output, "dmesg");
	write_file_atomically(folder.part() / "record.json", dump(outcome.record));
	folder.publish();

	RunResult result = result_of(plan, outcome.record, folder.place());
	std::string line = fmt::format("{} in {}", result.status, duration_text(output.end.wall_s));
	if (!result.reason.empty())
		line += fmt::format(": {}", result.reason);
	if (result.status != plan.identity.scenario.expected_of(result.step).status)
		line += fmt::format(" (expected {}; see {})", plan.identity.scenario.expected_of(result.step).status, result.folder.string());
	else if (result.status != "PASS")
		line += " (as the scenario expects)";
	progress.finish(plan.task, line);
	for (const auto& unmet : result.unmet)
		progress.say(fmt::format("{}: expectation not met: {}", plan.task, unmet));
	return result;
}

/// An earlier run with the same inputs, when asked for.
std::optional<RunResult> reuse(const Plan& plan, Progress& progress)
{
	const fs::path folder = plan.out / plan.identity.step.label / std::to_string(plan.identity.sample);
	std::error_code error;
	if (!fs::is_regular_file(folder / "record.json", error))
		return std::nullopt;
	const Json record = Json::parse(read_file(folder / "record.json"), nullptr, false);
	if (record.is_discarded() || !same_inputs(record, plan.identity)) {
		progress.say(fmt::format("{}: {} is of other inputs or no PASS; running again", plan.task, folder.string()));
		return std::nullopt;
	}
	RunResult result = result_of(plan, record, folder);
	result.reused = true;
	progress.say(fmt::format("{}: {} (from the run before, same inputs)", plan.task, result.status));
	return result;
}

/// Why this run cannot be made here, or "".
std::string reason_to_skip(const Scenario& s, const StepRequest& step, const Accel& accel)
{
	if (s.needs_accel == "kvm" && accel.name != "kvm")
		return fmt::format("needs kvm: {}", accel.finding);
	if (s.needs_step) {
		const long number = std::strtol(step.kernel.c_str(), nullptr, 10);
		if (number < static_cast<long>(s.needs_step))
			return fmt::format("needs step {} or later", s.needs_step);
	}
	return {};
}

RunResult skip_one(const Plan& plan, const std::string& reason, Progress& progress)
{
	RunFolder folder(plan.out, plan.identity.step.label, plan.identity.sample);
	Outcome outcome = skipped(plan.identity, reason);
	outcome.record["host"] = {{"started", timestamp()}};
	write_file_atomically(folder.part() / "record.json", dump(outcome.record));
	folder.publish();
	progress.say(fmt::format("{}: SKIPPED: {}", plan.task, reason));
	return result_of(plan, outcome.record, folder.place());
}

} // namespace

std::vector<RunResult> run_scenario(const fs::path& root, const Scenario& scenario, const std::string& steps, const RunOptions& options, Progress& progress)
{
	const fs::path qemu = find_qemu();
	for (const auto& disk : scenario.disks)
		(void)media_bytes_per_s(disk); // a disk that makes no sense is refused before anything is built

	const Kernels kernels(root, {options.linux_dir, options.fragments, scenario.profiles});
	const auto requests = resolve_steps(steps, kernels.steps());
	Accel accel = choose_accel(options.accel, scenario.clock, qemu);
	if (accel.name == "kvm")
		accel = prove_kvm(accel, options.accel, qemu, kernels.build(requests.front().kernel).bzimage);
	if (scenario.clock == "host")
		progress.say(fmt::format("accelerator: {} ({})", accel.name, accel.finding));
	const std::string version = qemu_version(qemu);

	std::vector<Plan> plans;
	std::vector<std::string> skips;
	Programs programs;
	for (const auto& request : requests) {
		const std::string skip = reason_to_skip(scenario, request, accel);
		Kernel kernel{.step = request.kernel, .subject = request.subject, .key = {}, .config_digest = {}, .compiler = {}, .release = {},
			      .bzimage = {}, .initramfs = {}, .modules_dir = {}};
		if (skip.empty()) {
			kernel = kernels.build(request.kernel);
			if (programs.key.empty())
				programs = kernels.programs();
		}
		std::error_code error;
		const auto initramfs_bytes = skip.empty() ? fs::file_size(kernel.initramfs, error) : 0;
		if (error)
			throw Error(fmt::format("{}: {}", kernel.initramfs.string(), error.message()));
		for (unsigned sample = 1; sample <= scenario.samples; ++sample) {
			Plan plan;
			plan.out = options.out;
			plan.qemu = qemu;
			plan.accel = accel;
			plan.linux_dir = options.linux_dir;
			plan.task = fmt::format("{} {}/{}", scenario.name, request.label, sample);
			plan.layout = make_layout(scenario, programs.bytes, initramfs_bytes);
			plan.identity = {scenario, request, sample, kernel, programs, accel.name, version, make_job(scenario, plan.layout, sample), {}, {}};
			plan.identity.qemu_command = qemu_argv(scenario, plan.layout, accel.name, symbolic_names());
			plan.identity.cmdline = kernel_cmdline(scenario, plan.layout, accel.name);
			plans.push_back(std::move(plan));
			skips.push_back(skip);
		}
	}

	// Runs in virtual time do not see each other; on the host's clock they would.
	const unsigned cpus = std::max(1u, std::thread::hardware_concurrency());
	unsigned jobs = options.jobs ? options.jobs : scenario.clock == "virtual" ? cpus : 1;
	jobs = std::min<unsigned>(jobs, static_cast<unsigned>(plans.size()));

	std::vector<RunResult> results(plans.size());
	std::atomic<std::size_t> next{0};
	std::mutex mutex;
	std::exception_ptr failure;
	const auto work = [&] {
		for (std::size_t i; (i = next.fetch_add(1)) < plans.size();) {
			try {
				InterruptScope::check();
				const Plan& plan = plans[i];
				if (!skips[i].empty()) {
					results[i] = skip_one(plan, skips[i], progress);
					continue;
				}
				if (options.resume)
					if (auto earlier = reuse(plan, progress)) {
						results[i] = std::move(*earlier);
						continue;
					}
				results[i] = run_one(plan, progress);
			} catch (...) {
				const std::lock_guard lock(mutex);
				if (!failure)
					failure = std::current_exception();
				next = plans.size(); // whoever runs finishes its own; nobody starts another
			}
		}
	};
	{
		std::vector<std::jthread> threads;
		for (unsigned i = 0; i < jobs; ++i)
			threads.emplace_back(work);
	}
	if (failure)
		std::rethrow_exception(failure);
	return results;
}

} // namespace pageout::bench
