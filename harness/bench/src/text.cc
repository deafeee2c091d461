// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/text.h"

#include "pageout/bench/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

namespace pageout::bench {

namespace fs = std::filesystem;

std::uint64_t parse_size(std::string_view text)
{
	const std::string_view whole = text;
	unsigned shift = 0;

	text = trim(text);
	if (!text.empty()) {
		switch (text.back()) {
		case 'k': case 'K': shift = 10; break;
		case 'm': case 'M': shift = 20; break;
		case 'g': case 'G': shift = 30; break;
		default: break;
		}
		if (shift)
			text.remove_suffix(1);
	}
	std::uint64_t number = 0;
	const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
	if (error != std::errc{} || end != text.data() + text.size() || text.empty() ||
	    number > (std::numeric_limits<std::uint64_t>::max() >> shift))
		throw Error(fmt::format("\"{}\" is not a size: write bytes, or a number with K, M or G, like 64M", whole), 2);
	return number << shift;
}

std::string format_size(std::uint64_t bytes)
{
	for (const auto& [shift, letter] : {std::pair{30, 'G'}, std::pair{20, 'M'}, std::pair{10, 'K'}})
		if (bytes && bytes % (1ULL << shift) == 0)
			return fmt::format("{}{}", bytes >> shift, letter);
	return std::to_string(bytes);
}

std::vector<std::string> split(std::string_view text, char separator)
{
	std::vector<std::string> parts;
	for (;;) {
		const auto at = text.find(separator);
		parts.emplace_back(text.substr(0, at));
		if (at == std::string_view::npos)
			return parts;
		text.remove_prefix(at + 1);
	}
}

std::string_view trim(std::string_view text)
{
	constexpr std::string_view blank = " \t\r\n";
	const auto first = text.find_first_not_of(blank);
	if (first == std::string_view::npos)
		return {};
	return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

bool starts_with(std::string_view text, std::string_view prefix)
{
	return text.substr(0, prefix.size()) == prefix;
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known)
{
	std::optional<std::string> best;
	std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;

	for (const auto& candidate : known) {
		std::vector<std::size_t> row(candidate.size() + 1);
		std::iota(row.begin(), row.end(), 0);
		for (std::size_t i = 0; i < word.size(); ++i) {
			std::size_t diagonal = row[0];
			row[0] = i + 1;
			for (std::size_t j = 0; j < candidate.size(); ++j) {
				const std::size_t above = row[j + 1];
				row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (word[i] != candidate[j])});
				diagonal = above;
			}
		}
		if (row.back() < best_distance) {
			best_distance = row.back();
			best = candidate;
		}
	}
	return best;
}

std::string read_file(const fs::path& path)
{
	std::ifstream in(path, std::ios::binary);
	if (!in)
		throw Error(fmt::format("{}: cannot read: {}", path.string(), std::strerror(errno)));
	std::ostringstream text;
	text << in.rdbuf();
	if (in.bad() || fs::is_directory(path))
		throw Error(fmt::format("{}: cannot read", path.string()));
	return std::move(text).str();
}

void write_file_atomically(const fs::path& path, std::string_view content)
{
	const fs::path part = fmt::format("{}.part-{}", path.string(), ::getpid());
	const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		throw Error(fmt::format("{}: cannot write: {}", path.string(), std::strerror(errno)));

	int error = 0;
	while (!content.empty() && !error) {
		const ssize_t n = ::write(fd, content.data(), content.size());
		if (n >= 0)
			content.remove_prefix(static_cast<std::size_t>(n));
		else if (errno != EINTR)
			error = errno;
	}
	if (!error && ::fsync(fd) != 0 && errno != EINVAL)
		error = errno;
	if (::close(fd) != 0 && !error)
		error = errno;
	if (!error && ::rename(part.c_str(), path.c_str()) != 0)
		error = errno;
	if (error) {
		::unlink(part.c_str());
		throw Error(fmt::format("{}: cannot write: {}", path.string(), std::strerror(error)));
	}
}

std::string shell_word(std::string_view text)
{
	constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%^";
	if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos)
		return std::string(text);
	std::string quoted = "'";
	for (const char c : text) {
		if (c == '\'')
			quoted += "'\\''";
		else
			quoted += c;
	}
	return quoted + "'";
}

std::string shell_line(const std::vector<std::string>& argv)
{
	std::string line;
	for (const auto& word : argv)
		line += (line.empty() ? "" : " ") + shell_word(word);
	return line;
}

fs::path project_root()
{
	if (const char* given = std::getenv("PAGEOUT_ROOT"); given && *given) {
		if (!fs::is_directory(fs::path(given) / "scripts"))
			throw Error(fmt::format("PAGEOUT_ROOT={}: no scripts/ in it: name the root of a pageout checkout", given));
		return fs::canonical(given);
	}
	std::error_code error;
	for (fs::path at = fs::read_symlink("/proc/self/exe", error).parent_path(); at.has_relative_path(); at = at.parent_path())
		if (fs::is_directory(at / "scripts", error) && fs::is_directory(at / "scenarios", error))
			return at;
	throw Error("cannot find the pageout checkout above this executable: set PAGEOUT_ROOT to its root");
}

} // namespace pageout::bench
