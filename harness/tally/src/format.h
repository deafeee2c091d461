// SPDX-License-Identifier: GPL-2.0-only
//
// The blktrace record as the kernel writes it (include/uapi/linux/blktrace_api.h, version 7): 48 bytes in the byte order of
// the traced machine, then pdu_len bytes of payload. No file header, no alignment.
#ifndef TALLY_FORMAT_H
#define TALLY_FORMAT_H

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pageout::tally {

inline constexpr std::uint32_t magic_mask = 0xffffff00;
inline constexpr std::uint32_t magic_base = 0x65617400;
inline constexpr std::uint32_t version = 7;
inline constexpr std::uint32_t magic = magic_base | version;

struct Record {
    std::uint32_t magic;
    std::uint32_t sequence;
    std::uint64_t time;    // ns, monotonic
    std::uint64_t sector;  // of 512 bytes
    std::uint32_t bytes;
    std::uint32_t action;
    std::uint32_t pid;
    std::uint32_t device;  // 12 bits of major, 20 of minor
    std::uint32_t cpu;
    std::uint16_t error;
    std::uint16_t pdu_len;
};
static_assert(sizeof(Record) == 48);

// Low byte of the action.
enum Act : std::uint8_t {
    act_none = 0,
    act_queue = 1,
    act_backmerge = 2,
    act_frontmerge = 3,
    act_getrq = 4,
    act_sleeprq = 5,
    act_requeue = 6,
    act_issue = 7,
    act_complete = 8,
    act_plug = 9,
    act_unplug_io = 10,
    act_unplug_timer = 11,
    act_insert = 12,
    act_split = 13,
    act_bounce = 14,
    act_remap = 15,
    act_abort = 16,
    act_drv_data = 17,
    act_last = act_drv_data
};
inline constexpr std::uint32_t act_cgroup = 1u << 8;

enum Note : std::uint8_t { note_process = 0, note_timestamp = 1, note_message = 2 };

// High 16 bits: categories.
inline constexpr std::uint32_t cat_shift = 16;
inline constexpr std::uint32_t cat_read = 1u << (0 + cat_shift);
inline constexpr std::uint32_t cat_write = 1u << (1 + cat_shift);
inline constexpr std::uint32_t cat_flush = 1u << (2 + cat_shift);
inline constexpr std::uint32_t cat_sync = 1u << (3 + cat_shift);
inline constexpr std::uint32_t cat_queue = 1u << (4 + cat_shift);
inline constexpr std::uint32_t cat_requeue = 1u << (5 + cat_shift);
inline constexpr std::uint32_t cat_issue = 1u << (6 + cat_shift);
inline constexpr std::uint32_t cat_complete = 1u << (7 + cat_shift);
inline constexpr std::uint32_t cat_fs = 1u << (8 + cat_shift);
inline constexpr std::uint32_t cat_pc = 1u << (9 + cat_shift);
inline constexpr std::uint32_t cat_notify = 1u << (10 + cat_shift);
inline constexpr std::uint32_t cat_ahead = 1u << (11 + cat_shift);
inline constexpr std::uint32_t cat_meta = 1u << (12 + cat_shift);
inline constexpr std::uint32_t cat_discard = 1u << (13 + cat_shift);
inline constexpr std::uint32_t cat_drv_data = 1u << (14 + cat_shift);
inline constexpr std::uint32_t cat_fua = 1u << (15 + cat_shift);

inline std::uint32_t major_of(std::uint32_t dev) { return dev >> 20; }
inline std::uint32_t minor_of(std::uint32_t dev) { return dev & 0xfffff; }

inline Record load(const std::byte* p)
{
    Record r;
    std::memcpy(&r, p, sizeof r);
    return r;
}

inline void swap_bytes(Record& r)
{
    r.magic = __builtin_bswap32(r.magic);
    r.sequence = __builtin_bswap32(r.sequence);
    r.time = __builtin_bswap64(r.time);
    r.sector = __builtin_bswap64(r.sector);
    r.bytes = __builtin_bswap32(r.bytes);
    r.action = __builtin_bswap32(r.action);
    r.pid = __builtin_bswap32(r.pid);
    r.device = __builtin_bswap32(r.device);
    r.cpu = __builtin_bswap32(r.cpu);
    r.error = __builtin_bswap16(r.error);
    r.pdu_len = __builtin_bswap16(r.pdu_len);
}

// Payloads of unplug, split and remap are big-endian whatever the machine.
inline std::uint64_t load_be64(const std::byte* p)
{
    std::uint64_t v;
    std::memcpy(&v, p, sizeof v);
    return std::endian::native == std::endian::little ? __builtin_bswap64(v) : v;
}
inline std::uint32_t load_be32(const std::byte* p)
{
    std::uint32_t v;
    std::memcpy(&v, p, sizeof v);
    return std::endian::native == std::endian::little ? __builtin_bswap32(v) : v;
}
inline std::uint32_t load_u32(const std::byte* p, bool swapped)
{
    std::uint32_t v;
    std::memcpy(&v, p, sizeof v);
    return swapped ? __builtin_bswap32(v) : v;
}

// An action that version 7 of the format has.
inline bool known_action(std::uint32_t action)
{
    if (action & cat_notify)
        return (action & 0xffff & ~act_cgroup) <= note_message;
    const std::uint32_t low = action & 0xffff & ~act_cgroup;
    return low >= act_queue && low <= act_last;
}

}  // namespace pageout::tally

#endif
