// SPDX-License-Identifier: GPL-2.0-only
//
// Collects what was wrong or odd. A file that is rotten from end to end must not fill memory or the screen: past a few of one
// kind in one file, they are counted.
#ifndef TALLY_DIAGNOSTICS_H
#define TALLY_DIAGNOSTICS_H

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pageout/tally.h"

namespace pageout::tally {

class Diagnostics {
public:
    void add(Severity severity, std::string_view file, std::optional<std::uint64_t> offset, std::optional<std::uint64_t> record,
             std::string_view code, std::string text)
    {
        if (severity != Severity::note)
            worst_ = worst_ == Verdict::refused || severity == Severity::refused ? Verdict::refused : Verdict::damage;
        auto [it, fresh] = seen_.try_emplace({std::string(file), std::string(code)});
        if (it->second.count++ >= most_places) {
            ++list_[it->second.last].times;
            return;
        }
        it->second.last = list_.size();
        list_.push_back({severity, std::string(file), offset, record, std::string(code), std::move(text), 1});
    }

    Verdict verdict() const { return worst_; }
    std::vector<Diagnostic> take() { return std::move(list_); }

private:
    static constexpr unsigned most_places = 5;
    struct Seen {
        unsigned count = 0;
        std::size_t last = 0;
    };
    std::map<std::pair<std::string, std::string>, Seen> seen_;
    std::vector<Diagnostic> list_;
    Verdict worst_ = Verdict::ok;
};

}  // namespace pageout::tally

#endif
