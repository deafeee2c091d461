// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/bench/models.h"

#include "pageout/bench/error.h"
#include "pageout/bench/scenario.h"
#include "pageout/bench/text.h"

#include <fmt/format.h>

#include <simdisk_model.h>

namespace pageout::bench {

std::vector<std::string> disk_model_names()
{
	std::vector<std::string> names;
	for (std::size_t i = 0; i < simdisk_model_count(); ++i)
		names.emplace_back(simdisk_model_at(i)->name);
	return names;
}

std::uint64_t media_bytes_per_s(const Disk& disk)
{
	const simdisk_model* named = simdisk_model_find(disk.model.c_str());
	if (!named)
		throw Error(fmt::format("disk {}: no model \"{}\"", disk.name, disk.model), 2);
	simdisk_model model = *named;

	for (const auto& [field, text] : disk.params) {
		if (field == "readonly") // of the region, not of the model
			continue;
		// Numbers only: parse_size() would take "8K" too, which the module does not.
		if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos)
			throw Error(fmt::format("disk {}: params.{}: \"{}\" is not a whole number", disk.name, field, text), 2);
		switch (simdisk_model_set(&model, field.c_str(), parse_size(text))) {
		case 0: break;
		case -1: throw Error(fmt::format("disk {}: params.{}: a disk model has no such field", disk.name, field), 2);
		default: throw Error(fmt::format("disk {}: params.{}: {} is out of range", disk.name, field, text), 2);
		}
	}
	if (const char* wrong = simdisk_model_check(&model, disk.bytes))
		throw Error(fmt::format("disk {} ({}): {}", disk.name, disk.model, wrong), 2);
	return simdisk_media_bytes_per_s(&model);
}

std::string scheduler_of(const Disk& disk)
{
	const simdisk_model* model = simdisk_model_find(disk.model.c_str());
	const bool has_queue = !model || model->kind != SIMDISK_SYNC;
	if (!has_queue && !disk.scheduler.empty() && disk.scheduler != "none")
		throw Error(fmt::format("disk {}: {} completes what is submitted at once and has no queue for a scheduler: leave \"{}\" out", disk.name, disk.model,
					disk.scheduler), 2);
	if (!has_queue)
		return {};
	return disk.scheduler.empty() ? "mq-deadline" : disk.scheduler;
}

} // namespace pageout::bench
