"""What the package promises, and for each promise the one test that holds it.

The default run always has these tests, whatever they take. Other tests attack the same promises
from elsewhere, or more often; a change that breaks a promise breaks the test that is named here.
"""

PROMISES = {
    "No kill and no second runner loses, doubles or tears a finished cell.": (
        "tests/attack/test_store_kills.py::test_publish"
    ),
    "Two machines' results are united without loss; what contradicts is named.": (
        "tests/benchmarks/records/test_packs.py"
        "::test_any_split_over_packs_and_files_reads_and_merges_alike"
    ),
    "What is kept of a pack equals what is read of it, or is made anew.": (
        "tests/benchmarks/records/test_frame.py::test_a_damaged_frame_is_made_anew"
    ),
    "A resumed training equals one that was not interrupted, bit for bit.": (
        "tests/attack/test_training_kills.py::test_resumed_at_every_step"
    ),
    "The number of workers changes no number.": (
        "tests/benchmarks/sweeps/test_sweep.py::test_the_number_of_jobs_changes_no_number"
    ),
    "A cell that fails stops no other cell.": (
        "tests/attack/test_isolation.py::test_one_bad_cell_stops_no_other"
    ),
    "A user's mistake is one line and exit code 2, without a traceback.": (
        "tests/test_refused.py::test_what_is_refused_is_one_line"
    ),
    "Forged numbers with right checksums do not pass as a verified submission.": (
        "tests/benchmarks/submission/test_submission.py::test_whatever_a_bundle_claims_the_verdict_is_that_of_its_loss"
    ),
    "Nothing that a record names is imported or called without --trust.": (
        "tests/attack/test_code_execution.py::test_a_folder_of_results"
    ),
    "Nothing downloaded is used without its hash.": (
        "tests/attack/test_network.py::test_every_answer"
    ),
    "No pickle is loaded that no sha256 pins.": (
        "tests/attack/test_checkpoints.py::test_sentence_encoders"
    ),
    "A record once published stays readable for ever.": (
        "tests/attack/test_releases.py::test_a_record_of_an_earlier_release_is_understood"
    ),
    "Each number of a table leads to its records, their commits and the hash of their data.": (
        "tests/benchmarks/report/test_report.py::test_every_record_is_behind_its_number"
    ),
    "What runs on the CPU runs on an accelerator.": (
        "tests/benchmarks/perf/test_device.py::test_a_cell_ends_in_the_bits_of_the_cpu"
    ),
    "A step never waits for the accelerator.": (
        "tests/benchmarks/perf/test_device.py::test_no_step_waits_for_the_device"
    ),
    "A loss has the value of its paper's formula.": "tests/losses/test_oracles.py::test_value",
    "A loss has the gradient of its paper's formula.": (
        "tests/losses/test_oracles.py::test_gradient"
    ),
    "A loss equals the released code of its paper.": (
        "tests/losses/test_golden.py::test_value_and_gradients"
    ),
    "A loss at a limit that it declares is the loss that it names there.": (
        "tests/losses/test_limits.py::test_limits"
    ),
    "A loss keeps its number between releases.": "tests/losses/test_values.py::test_frozen_numbers",
    "A domain keeps its first step with each loss, or its protocol has another version.": (
        "tests/attack/test_numbers.py::test_no_number_moves_under_one_protocol"
    ),
    "The SVM of graphs has scikit-learn's accuracies.": (
        "tests/domains/scoring/test_classifiers.py::test_identical_to_grid_search"
    ),
    "The linear probe is SGD as written by hand.": (
        "tests/domains/scoring/test_classifiers.py"
        "::test_the_linear_classifier_is_sgd_by_hand_at_the_rate_that_validation_prefers"
    ),
    "Neighbours vote as in the definition.": (
        "tests/domains/scoring/test_classifiers.py::test_neighbours_vote_as_in_the_definition"
    ),
    "The transfer tasks of sentences have scikit-learn's accuracies.": (
        "tests/domains/sentence/test_transfer.py::test_an_official_split_is_scored_once"
    ),
    "A preset is the recipe of its paper.": (
        "tests/domains/test_recipes.py::test_a_preset_is_what_its_protocol_states"
    ),
    "A number of a table is the mean of its records, beside the paper's and with its seeds.": (
        "tests/benchmarks/tables/test_tables.py::test_a_mean_says_its_seeds_and_its_difference"
    ),
    "The audit compares each key of a table with the paper.": (
        "tests/benchmarks/tables/test_audit.py::test_every_key_of_a_shipped_table_is_compared"
    ),
    "An exported encoder embeds a sample alike, whatever stands beside it.": (
        "tests/benchmarks/api/test_encoders.py::test_a_sample_alone_has_its_embedding_among_others"
    ),
}
