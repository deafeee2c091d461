// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pageout::bench {

/// "64M", "1G", "4096", "512K" -> bytes (powers of 1024). Throws Error that quotes the text.
std::uint64_t parse_size(std::string_view text);

/// The shortest exact form that parse_size() reads back: 67108864 -> "64M".
std::string format_size(std::uint64_t bytes);

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
bool starts_with(std::string_view text, std::string_view prefix);

/// The known name nearest to a mistyped one, or nothing when none is near.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

/// A whole file. Throws Error that names it.
std::string read_file(const std::filesystem::path& path);

/// Writes under a temporary name beside `path`, syncs, and renames: a reader sees the old content or the new, never a part.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Text as one word of a shell command, quoted only where it has to be.
std::string shell_word(std::string_view text);
std::string shell_line(const std::vector<std::string>& argv);

/// The project's root: PAGEOUT_ROOT, else the nearest directory above the executable that holds scripts/ and scenarios/.
std::filesystem::path project_root();

} // namespace pageout::bench
