#pragma once
#include <memory>

#include "runtime/train/data/data.h"
#include "runtime/train/data/documents.h"

namespace strata {

/// Rows of seq_len tokens made of documents, in an order drawn from the seed for each pass over
/// them, or in their own.
///
///   concat_then_split  documents follow each other, and what a row has no room for goes to the
///                      next, where its positions begin at 0 again
///   first_fit          whole documents, each in the first of 8 open rows that has room for it;
///   when
///                      none has, the fullest is done, and filled with labels that do not count.
///                      Documents longer than a row are left out
///
/// A document of n tokens gives n - 1 inputs with their labels; shorter than 2 it gives none. Rows
/// that the data do not fill are dropped, as are batches, unless the batch size is dynamic
/// (`compile.symbolic_batch`): the last one then has the rows that are left. The place is what has
/// been read, not how: documents that stand in open rows are read again.
std::unique_ptr<DataSource> MakePackedSource(std::unique_ptr<Documents> documents,
                                             const TrainConfig& config);

/// The data that `config.dataloader` names.
Result<std::unique_ptr<DataSource>> OpenDataSource(const TrainConfig& config);

/// The data that `config.validator` names, read as those that are trained on, but once and in
/// their own order. Synthetic data are other ones.
Result<std::unique_ptr<DataSource>> OpenValidationData(const TrainConfig& config);

}  // namespace strata
