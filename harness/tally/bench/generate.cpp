// SPDX-License-Identifier: GPL-2.0-only
#include "generate.h"

#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

int main(int argc, char** argv)
{
    CLI::App app{"Writes a large made-up capture, BASENAME.blktrace.N, for measuring readers."};
    std::string base;
    std::uint64_t events = 10000000, seed = 1;
    std::uint32_t cpus = 8;
    app.add_option("BASENAME", base)->required();
    app.add_option("--events", events, "events in all files together")->capture_default_str();
    app.add_option("--cpus", cpus, "number of files")->capture_default_str()->check(CLI::Range(1, 4096));
    app.add_option("--seed", seed, "the same seed writes the same bytes")->capture_default_str();
    app.footer("Example:\n  tally-generate --events 1000000 /tmp/big && blktally /tmp/big\n");
    CLI11_PARSE(app, argc, argv);

    struct Close {
        void operator()(FILE* f) const { std::fclose(f); }
    };
    std::vector<std::unique_ptr<FILE, Close>> files;
    for (std::uint32_t cpu = 0; cpu < cpus; ++cpu) {
        files.emplace_back(std::fopen(fmt::format("{}.blktrace.{}", base, cpu).c_str(), "w"));
        if (!files.back()) {
            std::perror(base.c_str());
            return 1;
        }
    }
    bool failed = false;
    pageout::tally::Generator g(seed, cpus, [&](std::uint32_t cpu, std::span<const std::byte> record) {
        failed |= std::fwrite(record.data(), 1, record.size(), files[cpu].get()) != record.size();
    });
    const std::uint64_t written = g.run(events);
    for (auto& f : files)
        failed |= std::fflush(f.get()) != 0;
    if (failed) {
        fmt::print(stderr, "tally-generate: cannot write {}.blktrace.N\n", base);
        return 1;
    }
    fmt::print("{} events\n", written);
    return 0;
}
