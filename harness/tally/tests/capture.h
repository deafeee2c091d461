// SPDX-License-Identifier: GPL-2.0-only
//
// Captures for the tests, record by record.
#ifndef TALLY_TESTS_CAPTURE_H
#define TALLY_TESTS_CAPTURE_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "format.h"

namespace pageout::tally::test {

inline constexpr std::uint32_t disk = 8u << 20;

struct Capture {
    std::vector<std::byte> bytes;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> sequence;
    bool swapped = false;

    // Appends the record as it is.
    Capture& raw(Record r, std::span<const std::byte> pdu = {})
    {
        r.pdu_len = r.pdu_len ? r.pdu_len : static_cast<std::uint16_t>(pdu.size());
        if (swapped)
            swap_bytes(r);
        const auto* p = reinterpret_cast<const std::byte*>(&r);
        bytes.insert(bytes.end(), p, p + sizeof r);
        bytes.insert(bytes.end(), pdu.begin(), pdu.end());
        return *this;
    }

    // An event with the next number of its device and CPU.
    Capture& event(std::uint64_t time, std::uint32_t action, std::uint64_t sector, std::uint32_t sectors, std::uint32_t cpu = 0,
                   std::uint32_t pid = 1, std::span<const std::byte> pdu = {}, std::uint16_t error = 0, std::uint32_t device = disk)
    {
        return raw({magic, ++sequence[{device, cpu}], time, sector, sectors * 512, action, pid, device, cpu, error, 0}, pdu);
    }

    static constexpr std::uint32_t q = act_queue | cat_queue, g = act_getrq | cat_queue, m = act_backmerge | cat_queue,
                                   f = act_frontmerge | cat_queue, i = act_insert | cat_queue | cat_fs, d = act_issue | cat_issue | cat_fs,
                                   c = act_complete | cat_complete | cat_fs, r = act_requeue | cat_requeue | cat_fs,
                                   rm = act_backmerge | cat_queue | cat_fs, bc = act_complete | cat_complete, x = act_split;
};

// A small capture with something of everything, for cutting and corrupting.
inline Capture varied()
{
    Capture t;
    const std::uint64_t be2 = std::endian::native == std::endian::little ? __builtin_bswap64(2) : 2;
    const auto pdu = std::as_bytes(std::span(&be2, 1));
    const std::byte comm[16] = {std::byte{'d'}, std::byte{'d'}};
    t.raw({magic, 0xffffffff, 5, 0x1234567890, 77, note_process | cat_notify, 1, disk, 0, 9, 0}, comm);
    t.event(10, act_plug | cat_queue | cat_read, 0, 0);
    t.event(11, Capture::q | cat_read, 100, 8);
    t.event(12, Capture::g | cat_read, 100, 8);
    t.event(13, Capture::q | cat_read, 108, 8);
    t.event(14, Capture::m | cat_read, 108, 8);
    t.event(15, act_unplug_io | cat_queue | cat_read, 0, 0, 0, 1, pdu);
    t.event(16, Capture::i | cat_read, 100, 16);
    t.event(20, Capture::d | cat_read, 100, 16);
    t.event(21, Capture::q | cat_write | cat_sync | act_cgroup, 500, 8, 0, 1, pdu);
    t.event(22, Capture::g | cat_write | cat_sync, 500, 8);
    t.event(23, Capture::d | cat_write | cat_sync, 500, 8);
    t.event(30, Capture::c | cat_read, 100, 16);
    t.event(31, Capture::c | cat_write | cat_sync, 500, 8, 0, 0, {}, 65531);
    return t;
}

}  // namespace pageout::tally::test

#endif
