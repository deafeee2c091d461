// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/qemu.h"

#include "pageout/bench/error.h"
#include "pageout/bench/process.h"
#include "pageout/bench/scenario.h"
#include "pageout/bench/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace pageout::bench {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

fs::path find_qemu()
{
	const char* given = std::getenv("PAGEOUT_QEMU");
	const std::string name = given && *given ? given : "qemu-system-x86_64";
	if (const auto found = find_executable(name))
		return *found;
	throw Error(fmt::format("{} is not there{}: apt-get install qemu-system-x86 (or let scripts/bench install all that is needed)", name,
				given && *given ? " (PAGEOUT_QEMU names it)" : ""));
}

std::string qemu_version(const fs::path& qemu)
{
	const std::string text = capture({qemu.string(), "--version"}, "asking the emulator for its version");
	return std::string(trim(split(text, '\n').front()));
}

fs::path turns_library()
{
	const fs::path path = fs::read_symlink("/proc/self/exe").parent_path() / "pageout-turns.so";
	if (::access(path.c_str(), R_OK) != 0)
		throw Error(fmt::format("{}: {}: it is built with the tools (make tools)", path.string(), std::strerror(errno)));
	return path;
}

/// The rate of the time stamp counter that the emulator hands on: the host's own, where it has one, else nanoseconds. To a
/// hundredth, so that it is the same at each start.
static std::uint64_t emulated_tsc_khz()
{
#if defined(__x86_64__)
	const auto begin = Clock::now();
	const std::uint64_t first = __builtin_ia32_rdtsc();
	while (Clock::now() - begin < 20ms)
		;
	const std::uint64_t ticks = __builtin_ia32_rdtsc() - first;
	const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
	constexpr std::uint64_t step = 10'000;
	return (ticks * 1'000'000 / static_cast<std::uint64_t>(ns) + step / 2) / step * step;
#else
	return 1'000'000;
#endif
}

std::vector<std::string> kernel_cmdline(const Scenario& s, const Layout& layout, const std::string& accel)
{
	const auto region = [](const Region& r) { return fmt::format("pageout.{}={:#x},{:#x}", r.name, r.phys, r.bytes); };
	std::vector<std::string> words = {
		"console=ttyS0",
		fmt::format("mem={}", s.mem_bytes),
		"nokaslr",
		"panic=-1",      // a panic ends the emulator (-no-reboot) instead of waiting for the time-out
		"loglevel=6",
		"oops=panic",
		"mitigations=off",
	};
	if (accel == "tcg") {
		// Without it the clock stays tsc-early for its first seconds and timers run at the tick: see COARSE-CLOCK.
		words.insert(words.end(), {"tsc=reliable",
					   // String instructions are slow under emulation.
					   "clearcpuid=rep_good,erms,fsrm"});
	}
	if (accel == "tcg" && s.clock != "virtual") // the kernel cannot find it out where the host is busy, and loses time
		words.emplace_back(fmt::format("tsc_early_khz={}", emulated_tsc_khz()));
	if (s.clock != "virtual") // on a busy host the timer's interrupts come too late for the kernel's taste, and it panics
		words.emplace_back("no_timer_check");
	words.insert(words.end(), {region(layout.job), region(layout.out), region(layout.prog)});
	std::erase_if(words, [&](const std::string& word) {
		return std::find(s.cmdline_remove.begin(), s.cmdline_remove.end(), word) != s.cmdline_remove.end();
	});
	words.insert(words.end(), s.cmdline.begin(), s.cmdline.end());
	return words;
}

/// A kernel without ACPI learns of its CPUs from the firmware's older table, which has one CPU for each socket.
static std::string smp(unsigned cpus)
{
	return cpus == 1 ? "1" : fmt::format("{0},sockets={0},cores=1,threads=1", cpus);
}

std::vector<std::string> qemu_argv(const Scenario& s, const Layout& layout, const std::string& accel, const GuestCommand& names)
{
	std::vector<std::string> argv;
	if (s.clock == "virtual")
		argv = {"env", "LD_PRELOAD=" + names.turns};
	argv.insert(argv.end(), {names.qemu, "-M", "pc,memory-backend=memory", "-nodefaults", "-no-user-config", "-display", "none",
					 "-no-reboot", "-smp", smp(s.cpus), "-m", fmt::format("{}M", layout.total_bytes >> 20),
					 "-object", fmt::format("memory-backend-file,id=memory,size={},mem-path={},share=on", layout.total_bytes, names.memory),
					 "-chardev", fmt::format("file,id=console,path={}", names.console), "-serial", "chardev:console"});
	const auto add = [&](std::initializer_list<std::string> words) { argv.insert(argv.end(), words); };

	if (s.clock == "virtual") {
		// Every source of time and chance is the instruction count: the same run, to the byte, on every host.
		add({"-accel", "tcg", "-icount", fmt::format("shift={},sleep=off", s.icount_shift), "-rtc", "base=2020-01-01,clock=vm", "-seed", "1",
		     "-cpu", "max,-rdrand,-rdseed", "-name", "guest=pageout,debug-threads=on"});
	} else if (accel == "kvm") {
		add({"-accel", "kvm", "-rtc", "base=2020-01-01", "-cpu", "host"});
	} else {
		add({"-accel", "tcg,thread=multi", "-rtc", "base=2020-01-01", "-cpu", "max"});
	}
	std::string cmdline;
	for (const auto& word : kernel_cmdline(s, layout, accel))
		cmdline += (cmdline.empty() ? "" : " ") + word;
	add({"-kernel", names.bzimage, "-initrd", names.initramfs, "-append", cmdline});
	return argv;
}

namespace {

std::string last_words(const fs::path& log)
{
	std::string text;
	try {
		text = read_file(log);
	} catch (const Error&) {
		return {};
	}
	std::string words(trim(text));
	for (char& c : words)
		if (c == '\n' || c == '\r')
			c = ' ';
	return words.size() > 400 ? "…" + words.substr(words.size() - 400) : words;
}

} // namespace

GuestEnd run_emulator(const std::vector<std::string>& argv, const fs::path& log, const std::vector<int>& keep, std::chrono::milliseconds boot_timeout,
		      std::chrono::milliseconds timeout, const std::function<bool()>& alive, const std::function<void()>& tick)
{
	const auto start = Clock::now();
	const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
	GuestEnd end;
	Child child(argv, {log, log}, keep);

	auto ended = child.wait_until(start + std::min(boot_timeout, timeout), tick);
	const bool lives = ended || alive();
	if (!ended && lives)
		ended = child.wait_until(start + timeout, tick);
	child.kill();

	end.wall_s = seconds();
	end.diagnostics = last_words(log);
	if (ended) {
		end.how = ended->signaled ? GuestEnd::How::signaled : GuestEnd::How::exited;
		end.code = ended->code;
	} else {
		end.how = lives ? GuestEnd::How::timed_out : GuestEnd::How::boot_timed_out;
	}
	return end;
}

namespace {

/// A machine whose firmware is four instructions: tell the exit device, and halt.
std::string probe_firmware()
{
	constexpr std::size_t bytes = 64 << 10;
	constexpr char code[] = {'\xb0', '\x31',  // mov al, 0x31
				 '\xe6', '\xf4',  // out 0xf4, al
				 '\xf4',          // hlt
				 '\xeb', '\xfd'}; // jmp to the hlt
	std::string image(bytes, '\0');
	image.replace(bytes - 16, sizeof code, code, sizeof code); // the reset vector
	return image;
}
constexpr int probe_answer = (0x31 << 1) | 1; // what isa-debug-exit makes of it

class ScratchFolder {
public:
	ScratchFolder()
	{
		std::string name = (fs::temp_directory_path() / "pageout-probe-XXXXXX").string();
		if (!::mkdtemp(name.data()))
			throw Error(fmt::format("{}: {}", name, std::strerror(errno)));
		path_ = name;
	}
	~ScratchFolder()
	{
		std::error_code error;
		fs::remove_all(path_, error);
	}
	const fs::path& path() const { return path_; }

private:
	fs::path path_;
};

std::string probe_kvm(const fs::path& qemu, const fs::path& device, std::chrono::milliseconds patience, bool& works)
{
	works = false;
	std::error_code error;
	if (!fs::exists(device, error))
		return fmt::format("{} is absent", device.string());
	if (::access(device.c_str(), R_OK | W_OK) != 0)
		return fmt::format("{} is unreadable: {}", device.string(), std::strerror(errno));

	const ScratchFolder scratch;
	const fs::path firmware = scratch.path() / "probe.bin";
	const fs::path log = scratch.path() / "log";
	write_file_atomically(firmware, probe_firmware());
	const GuestEnd end = run_emulator({qemu.string(), "-accel", "kvm", "-M", "pc", "-m", "16M", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
					   "-cpu", "host", "-bios", firmware.string(), "-device", "isa-debug-exit,iobase=0xf4,iosize=4"},
					  log, {}, patience, patience, [] { return false; }, {});
	if (end.how == GuestEnd::How::exited && end.code == probe_answer) {
		works = true;
		return fmt::format("{}: a probe guest answered", device.string());
	}
	if (end.how == GuestEnd::How::exited || end.how == GuestEnd::How::signaled)
		return fmt::format("{} is present but dead: the probe guest ended with {} {}{}", device.string(),
				   end.how == GuestEnd::How::exited ? "status" : "signal", end.code,
				   end.diagnostics.empty() ? "" : fmt::format(" ({})", end.diagnostics));
	return fmt::format("{} is present but dead: a probe guest gave no answer in {} s", device.string(),
			   std::chrono::duration_cast<std::chrono::seconds>(patience).count());
}

} // namespace

Accel choose_accel(const std::string& request, const std::string& clock, const fs::path& qemu, const fs::path& device, std::chrono::milliseconds patience)
{
	if (clock == "virtual") {
		if (request == "kvm")
			throw Error("--accel kvm: virtual time exists under emulation only; add --clock host", 2);
		return {"tcg", "not asked: virtual time is emulation's"};
	}
	if (request == "tcg")
		return {"tcg", "not asked"};
	bool works = false;
	std::string finding = probe_kvm(qemu, device, patience, works);
	if (!works && request == "kvm")
		throw Error(fmt::format("--accel kvm: {}; use --accel tcg", finding));
	return {works ? "kvm" : "tcg", finding + (works ? "" : "; going on with emulation (tcg)")};
}

Accel prove_kvm(const Accel& chosen, const std::string& request, const fs::path& qemu, const fs::path& bzimage, std::chrono::milliseconds patience)
{
	if (chosen.name != "kvm")
		return chosen;
	const ScratchFolder scratch;
	const fs::path console = scratch.path() / "console";
	const GuestEnd end = run_emulator({qemu.string(), "-accel", "kvm", "-cpu", "host", "-M", "pc", "-m", "256M", "-nodefaults", "-no-user-config", "-display", "none",
					   "-no-reboot", "-chardev", fmt::format("file,id=console,path={}", console.string()), "-serial", "chardev:console",
					   "-kernel", bzimage.string(), "-append", "console=ttyS0 panic=-1 rdinit=/none root=/dev/none"},
					  scratch.path() / "log", {}, patience, patience, [] { return true; }, {});
	std::error_code error;
	const ConsoleFindings found = scan_console(fs::exists(console, error) ? read_file(console) : std::string());
	// The panic for want of a root file system is the last thing a booting kernel can do here: it got all the way.
	if (end.how == GuestEnd::How::exited && end.code == 0 && found.panic.find("VFS") != std::string::npos)
		return {"kvm", fmt::format("{}; a kernel booted in {:.1f} s", chosen.finding, end.wall_s)};

	std::string why;
	switch (end.how) {
	case GuestEnd::How::exited: why = fmt::format("ended with status {}", end.code); break;
	case GuestEnd::How::signaled: why = fmt::format("ended with signal {}", end.code); break;
	default: why = fmt::format("did not get there in {:.0f} s", end.wall_s); break;
	}
	if (!end.diagnostics.empty())
		why += fmt::format(" ({})", end.diagnostics);
	if (!found.last_line.empty())
		why += fmt::format("; its last line: {}", found.last_line);
	const std::string finding = fmt::format("/dev/kvm is present but dead: a few instructions run, a kernel that was to boot {}", why);
	if (request == "kvm")
		throw Error(fmt::format("--accel kvm: {}; use --accel tcg", finding));
	return {"tcg", finding + "; going on with emulation (tcg)"};
}

} // namespace pageout::bench
