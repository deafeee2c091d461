// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/steps.h"

#include "pageout/bench/error.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace pageout::bench {
namespace {

const std::vector<Step> available = {
	{"control:ra-unplugged", "control"}, {"base", "Linux"}, {"1", "one"}, {"2", "two"}, {"3", "three"}, {"4", "four"},
};

std::string labels(std::string_view list)
{
	std::string text;
	for (const auto& request : resolve_steps(list, available))
		text += request.label + "=" + request.kernel + " ";
	return text;
}

TEST(Steps, Words)
{
	EXPECT_EQ(labels("base"), "base=base ");
	EXPECT_EQ(labels("0"), "base=base ");
	EXPECT_EQ(labels("3"), "3=3 ");
	EXPECT_EQ(labels("full"), "full=4 ");
	EXPECT_EQ(labels("control:ra-unplugged"), "control:ra-unplugged=control:ra-unplugged ");
	EXPECT_EQ(labels("all"), "base=base 1=1 2=2 3=3 4=4 ");
}

TEST(Steps, ListsAndRanges)
{
	EXPECT_EQ(labels("base,3,1-2,full,control:ra-unplugged"), "base=base 3=3 1=1 2=2 full=4 control:ra-unplugged=control:ra-unplugged ");
	EXPECT_EQ(labels("0-1"), "base=base 1=1 ");
	EXPECT_EQ(labels("3-"), "3=3 4=4 ");
	EXPECT_EQ(labels(" base , 1 "), "base=base 1=1 ");
}

TEST(Steps, TwiceIsOnceButFullKeepsItsName)
{
	EXPECT_EQ(labels("base,base,0"), "base=base ");
	EXPECT_EQ(labels("4,full"), "4=4 full=4 ");
}

TEST(Steps, SubjectComesAlong)
{
	EXPECT_EQ(resolve_steps("full", available).front().subject, "four");
}

TEST(Steps, FullOfAnEmptySeriesIsBase)
{
	EXPECT_EQ(resolve_steps("full", {{"base", "Linux"}}).front().kernel, "base");
}

class BadSteps : public testing::TestWithParam<const char*> {};

TEST_P(BadSteps, AreRefusedWithTheWordAndWhatThereIs)
{
	try {
		resolve_steps(GetParam(), available);
		FAIL() << GetParam();
	} catch (const Error& error) {
		const std::string what = error.what();
		EXPECT_EQ(error.exit_status(), 2);
		EXPECT_NE(what.find(GetParam()), std::string::npos) << what;
		EXPECT_NE(what.find("control:ra-unplugged, base, 1, 2, 3, 4"), std::string::npos) << what;
	}
}

INSTANTIATE_TEST_SUITE_P(All, BadSteps,
			 testing::Values("", ",", "base,", "9", "3-9", "4-2", "1-x", "x", "control:", "control:none", "-1", "1.5", "base full", "99999999999999999999"));

TEST(Steps, Order)
{
	std::vector<std::string> names = {"full", "10", "base", "2", "control:b", "1", "control:a"};
	std::sort(names.begin(), names.end(), step_before);
	EXPECT_EQ(names, (std::vector<std::string>{"control:a", "control:b", "base", "1", "2", "10", "full"}));
}

} // namespace
} // namespace pageout::bench
