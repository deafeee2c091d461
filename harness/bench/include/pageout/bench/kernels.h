// SPDX-License-Identifier: GPL-2.0-only
//
// Kernels, modules and images: made by scripts/kernel.py and scripts/image.py (docs/seams.md, "Kernel cache").
#pragma once

#include "pageout/bench/steps.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pageout::bench {

struct BuildOptions {
	std::string linux_dir;              ///< a kernel tree of the user's; "" = the packaged source
	std::vector<std::string> fragments; ///< further configuration fragments
	std::vector<std::string> profiles;  ///< none = the measuring kernel
};

struct Kernel {
	std::string step, subject, key, config_digest, compiler, release;
	std::filesystem::path bzimage, initramfs, modules_dir;
};

struct Programs {
	std::filesystem::path image;
	std::uint64_t bytes = 0;
	std::string key;
};

class Kernels {
public:
	explicit Kernels(std::filesystem::path root, BuildOptions options = {});
	std::vector<Step> steps() const;
	Kernel build(const std::string& step) const; ///< makes what is missing; progress on standard error
	Programs programs() const;

private:
	std::vector<std::string> command(const std::string& script, std::vector<std::string> words) const;
	std::filesystem::path root_;
	BuildOptions options_;
};

} // namespace pageout::bench
