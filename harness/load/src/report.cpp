// SPDX-License-Identifier: GPL-2.0-only
#include "report.h"

#include <algorithm>
#include <cerrno>

#include <unistd.h>

#include <fmt/format.h>

namespace pageout::load {
namespace {

using Ull = unsigned long long;

template <typename... Args> void line(fmt::format_string<Args...> format, Args &&...args)
{
	char buffer[1024];
	const auto result = fmt::format_to_n(buffer, sizeof buffer - 1, format, std::forward<Args>(args)...);
	std::size_t length = std::min(result.size, sizeof buffer - 1);
	buffer[length++] = '\n';
	for (std::size_t done = 0; done < length;) {
		const ssize_t n = write(STDOUT_FILENO, buffer + done, length - done);
		if (n > 0)
			done += std::size_t(n);
		else if (errno != EINTR)
			throw OutputError();
	}
}

} // namespace

void report_start(std::string_view workload, std::uint64_t bytes, std::uint64_t passes, std::uint64_t seed,
		  std::string_view details)
{
	line(R"({{"event": "start", "workload": "{}", "bytes": {}, "passes": {}, "seed": {}{}}})", workload, bytes, passes,
	     seed, details);
}

void report_phase(std::uint64_t pass, std::string_view phase, const Span &span, std::uint64_t pages)
{
	line(R"({{"event": "phase", "pass": {}, "phase": "{}", "ns": {}, "end_ns": {}, "pages": {}}})", pass, phase,
	     span.end_ns - span.begin_ns, span.end_ns, pages);
}

void report_unit(std::uint64_t pass, std::uint64_t unit, const Span &span, std::uint64_t pages)
{
	line(R"({{"event": "unit", "pass": {}, "unit": {}, "ns": {}, "end_ns": {}, "pages": {}}})", pass, unit,
	     span.end_ns - span.begin_ns, span.end_ns, pages);
}

void report_pass(std::uint64_t pass, const Span &span, std::uint64_t pages)
{
	line(R"({{"event": "pass", "pass": {}, "ns": {}, "end_ns": {}, "pages": {}}})", pass, span.end_ns - span.begin_ns,
	     span.end_ns, pages);
}

void report_stalls(std::uint64_t pass, const Histogram &ns)
{
	line(R"({{"event": "stalls", "pass": {}, "count": {}, "p50_ns": {}, "p90_ns": {}, "p99_ns": {}, "p999_ns": {}, "max_ns": {}}})",
	     pass, ns.count(), ns.percentile(500'000), ns.percentile(900'000), ns.percentile(990'000),
	     ns.percentile(999'000), ns.max());
}

void report_corruption(const Corruption &corruption)
{
	const auto &tag = corruption.tag;
	const auto &m = corruption.mismatch;
	char origin[96] = "\"unknown\"";
	if (m.all_zero)
		*fmt::format_to_n(origin, sizeof origin - 1, "\"zeros\"").out = '\0';
	else if (m.content_of)
		*fmt::format_to_n(origin, sizeof origin - 1, R"({{"page": {}, "pass": {}}})", m.content_of->page,
				  m.content_of->pass)
			 .out = '\0';
	line(R"({{"event": "corruption", "page": {}, "pass": {}, "offset": {}, "expected": {}, "found": {}, )"
	     R"("wrong_bytes": {}, "expected_word": "{:#018x}", "found_word": "{:#018x}", "content_of": {}}})",
	     tag.page, tag.pass, m.offset_bytes, m.expected, m.found, m.wrong_bytes, m.expected_word, m.found_word,
	     static_cast<const char *>(origin));
}

void report_end(std::uint64_t verified_pages)
{
	line(R"({{"event": "end", "verified_pages": {}}})", verified_pages);
}

} // namespace pageout::load
