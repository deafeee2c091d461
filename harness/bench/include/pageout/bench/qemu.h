// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "pageout/bench/layout.h"
#include "pageout/bench/status.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace pageout::bench {

struct Scenario;

/// The emulator: PAGEOUT_QEMU, else qemu-system-x86_64 of the PATH. Throws Error with the package to install.
std::filesystem::path find_qemu();
/// "QEMU emulator version 7.2.22 (Debian …)", its first line.
std::string qemu_version(const std::filesystem::path& qemu);

/// What a guest is started with. Paths appear in the command only as these, so that a record can name the command
/// without naming places of one machine.
struct GuestCommand {
	std::string qemu;
	std::string bzimage;
	std::string initramfs;
	std::string memory;  ///< what the memory backend opens
	std::string console; ///< file for the serial console
	std::string turns = "{turns}"; ///< preloaded in virtual time: see turns_library()
};

/// pageout-turns.so, which makes two threads of the emulator take turns, without which virtual time is not exactly
/// repeatable; beside this executable. Throws Error where it is not.
std::filesystem::path turns_library();

/// The kernel's command line.
std::vector<std::string> kernel_cmdline(const Scenario& scenario, const Layout& layout, const std::string& accel);

/// The whole command. accel is "tcg" or "kvm".
std::vector<std::string> qemu_argv(const Scenario& scenario, const Layout& layout, const std::string& accel, const GuestCommand& names);

/// Runs an emulator to its end: never longer than the time-outs, never left behind.
/// `alive` says whether the guest has given its first sign of life; `tick` is called a few times a second.
GuestEnd run_emulator(const std::vector<std::string>& argv, const std::filesystem::path& log, const std::vector<int>& keep,
		      std::chrono::milliseconds boot_timeout, std::chrono::milliseconds timeout, const std::function<bool()>& alive,
		      const std::function<void()>& tick);

/// Which accelerator to use, and what was found on the way.
struct Accel {
	std::string name;    ///< "tcg" or "kvm"
	std::string finding; ///< "absent", "unreadable: …", "present but dead: …", "a probe guest answered in … s", "not asked"
};

/// request: "auto", "tcg" or "kvm". /dev/kvm counts only if a guest of a few instructions answers in time; that is the cheap
/// half of the proof (see prove_kvm). Virtual time is TCG's. Throws Error where kvm was demanded and does not run, or
/// together with the virtual clock.
Accel choose_accel(const std::string& request, const std::string& clock, const std::filesystem::path& qemu,
		   const std::filesystem::path& device = "/dev/kvm", std::chrono::milliseconds patience = std::chrono::seconds(10));

/// The other half: this kernel has to boot under KVM, up to the point where it looks for a root file system and finds none.
/// Where it does not in time, the answer is TCG and what was found; throws Error where kvm was demanded.
Accel prove_kvm(const Accel& chosen, const std::string& request, const std::filesystem::path& qemu, const std::filesystem::path& bzimage,
		std::chrono::milliseconds patience = std::chrono::seconds(30));

} // namespace pageout::bench
