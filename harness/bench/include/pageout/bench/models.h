// SPDX-License-Identifier: GPL-2.0-only
//
// What the bench has to know of the modelled disks; the arithmetic itself is module/simdisk/simdisk_model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pageout::bench {

struct Disk;

std::vector<std::string> disk_model_names();

/// The most bytes a second that the disk's medium can move, its params applied; 0 where the device itself sets no limit.
/// Throws Error where a param is unknown or the model makes no sense with it.
std::uint64_t media_bytes_per_s(const Disk& disk);

/// The scheduler that the disk is to have: the one asked for, else mq-deadline, or "" for a model that has no queue to
/// schedule (it completes when submitted). Throws Error where one is asked for that cannot be.
std::string scheduler_of(const Disk& disk);

} // namespace pageout::bench
