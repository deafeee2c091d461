// SPDX-License-Identifier: GPL-2.0-only
//
// Random numbers, orders and distributions that are the same on every machine.
#pragma once

#include <cstdint>

namespace pageout::load {

// A bijection of 64-bit words in which every bit of the result depends on every
// bit of the argument (the finalizer of SplitMix64).
constexpr std::uint64_t mix64(std::uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

// SplitMix64: small, fast, and good enough to choose pages.
class Random {
public:
	explicit constexpr Random(std::uint64_t seed) : state_(seed) {}
	constexpr std::uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15); }
	// 0 <= result < limit; limit > 0. The bias is below limit / 2^64.
	constexpr std::uint64_t below(std::uint64_t limit)
	{
		return std::uint64_t((static_cast<unsigned __int128>(next()) * limit) >> 64);
	}
	// 0 <= result < 1, in steps of 2^-53.
	constexpr double unit() { return double(next() >> 11) * 0x1p-53; }

private:
	std::uint64_t state_;
};

// A random order of 0 .. size-1 that takes no memory: a Feistel network over the
// next power of four, walked until it falls inside. size is from 1 to 2^40.
class Permutation {
public:
	// Throws std::invalid_argument.
	Permutation(std::uint64_t size, std::uint64_t seed);
	std::uint64_t size() const { return size_; }
	// The element at `index` < size().
	std::uint64_t operator()(std::uint64_t index) const;

private:
	static constexpr int rounds = 4;
	std::uint64_t size_;
	unsigned half_bits_;
	std::uint64_t keys_[rounds];
};

// Zipf's law: rank k of 0 .. size-1 with a probability proportional to
// 1 / (k+1)^theta, by rejection-inversion (Hoermann and Derflinger, 1996): no
// table, a constant time whatever the size. theta > 0.
class Zipf {
public:
	// Throws std::invalid_argument.
	Zipf(std::uint64_t size, double theta);
	std::uint64_t operator()(Random &random) const;

private:
	double integral(double x) const;
	double inverse(double x) const;
	double density(double x) const;

	double size_;
	double theta_;
	double low_;
	double high_;
	double shortcut_;
};

} // namespace pageout::load
