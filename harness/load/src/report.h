// SPDX-License-Identifier: GPL-2.0-only
//
// The lines that pageout-load prints (docs/seams.md): JSON, one event a line,
// each written with one write(2), formatted in a fixed buffer.
#pragma once

#include <cstdint>
#include <exception>
#include <string_view>

#include "pageout/histogram.h"
#include "pageout/pattern.h"

namespace pageout::load {

// A page that does not hold what was written there.
class Corruption : public std::exception {
public:
	Corruption(const Tag &tag, const Mismatch &mismatch) : tag(tag), mismatch(mismatch) {}
	const char *what() const noexcept override { return "a page holds a wrong byte"; }
	Tag tag; // of the content that was expected
	Mismatch mismatch;
};

// Standard output is gone: nobody will learn the result.
class OutputError : public std::exception {
public:
	const char *what() const noexcept override { return "cannot write to standard output"; }
};

void report_start(std::string_view workload, std::uint64_t bytes, std::uint64_t passes, std::uint64_t seed,
		  std::string_view details);
// A stretch of CLOCK_MONOTONIC, in nanoseconds.
struct Span {
	std::uint64_t begin_ns;
	std::uint64_t end_ns;
};

void report_phase(std::uint64_t pass, std::string_view phase, const Span &span, std::uint64_t pages);
void report_unit(std::uint64_t pass, std::uint64_t unit, const Span &span, std::uint64_t pages);
void report_pass(std::uint64_t pass, const Span &span, std::uint64_t pages);
void report_stalls(std::uint64_t pass, const Histogram &ns);
void report_corruption(const Corruption &corruption);
void report_end(std::uint64_t verified_pages);

} // namespace pageout::load
