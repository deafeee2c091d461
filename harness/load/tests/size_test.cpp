// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/size.h"

#include <gtest/gtest.h>

namespace pageout::load {
namespace {

TEST(Size, Units)
{
	EXPECT_EQ(parse_size("0"), 0u);
	EXPECT_EQ(parse_size("4096"), 4096u);
	EXPECT_EQ(parse_size("64K"), 65536u);
	EXPECT_EQ(parse_size("96m"), 96u << 20);
	EXPECT_EQ(parse_size("1GiB"), 1u << 30);
	EXPECT_EQ(parse_size("2T"), std::uint64_t{2} << 40);
	EXPECT_EQ(parse_size("512B"), 512u);
	EXPECT_EQ(parse_size("18446744073709551615"), ~std::uint64_t{0});
}

TEST(Size, Nonsense)
{
	for (const char *text : {"", "K", "-1", "+1", " 1", "1 ", "1X", "1KK", "1.5M", "1iB", "1Ki", "0x10", "18446744073709551616",
				 "18014398509481984K", "1KB2"})
		EXPECT_FALSE(parse_size(text)) << text;
}

} // namespace
} // namespace pageout::load
