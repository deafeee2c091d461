// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/random.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace pageout::load {

Permutation::Permutation(std::uint64_t size, std::uint64_t seed) : size_(size), half_bits_(1)
{
	if (size == 0 || size > std::uint64_t{1} << 40)
		throw std::invalid_argument("a permutation has 1 to 2^40 elements");
	while ((std::uint64_t{1} << (2 * half_bits_)) < size)
		++half_bits_;
	Random random(seed);
	for (auto &key : keys_)
		key = random.next();
}

std::uint64_t Permutation::operator()(std::uint64_t index) const
{
	const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
	// The power of four is less than four times the size, so that the walk
	// takes fewer than four steps on average; it ends, since it is a cycle
	// of a bijection that began inside.
	do {
		std::uint64_t left = index >> half_bits_;
		std::uint64_t right = index & mask;
		for (const auto key : keys_) {
			const std::uint64_t next = left ^ (mix64(right + key) & mask);
			left = right;
			right = next;
		}
		index = left << half_bits_ | right;
	} while (index >= size_);
	return index;
}

Zipf::Zipf(std::uint64_t size, double theta) : size_(double(size)), theta_(theta)
{
	if (size == 0 || size > std::uint64_t{1} << 40 || !(theta > 0) || theta > 100)
		throw std::invalid_argument("Zipf's law needs 1 to 2^40 elements and 0 < theta <= 100");
	low_ = integral(1.5) - 1;
	high_ = integral(size_ + 0.5);
	shortcut_ = 2 - inverse(integral(2.5) - density(2));
}

// The integral of x^-theta, and its inverse, written so that theta near 1 loses
// no digits.
double Zipf::integral(double x) const
{
	const double logarithm = std::log(x);
	const double t = (1 - theta_) * logarithm;
	const double factor = std::fabs(t) > 1e-8 ? std::expm1(t) / t : 1 + t / 2;
	return factor * logarithm;
}

double Zipf::inverse(double x) const
{
	const double t = std::max(x * (1 - theta_), -1.0);
	const double factor = std::fabs(t) > 1e-8 ? std::log1p(t) / t : 1 - t / 2;
	return std::exp(factor * x);
}

double Zipf::density(double x) const
{
	return std::exp(-theta_ * std::log(x));
}

std::uint64_t Zipf::operator()(Random &random) const
{
	for (;;) {
		const double u = high_ + random.unit() * (low_ - high_);
		const double x = inverse(u);
		const double k = std::clamp(std::floor(x + 0.5), 1.0, size_);
		if (k - x <= shortcut_ || u >= integral(k + 0.5) - density(k))
			return std::uint64_t(k) - 1;
	}
}

} // namespace pageout::load
