"""The models of the coverage run, each with a small input. Imports a library only when a model of it is built.

torchvision is listed in full from the library itself; timm is a choice of one model per family; transformers are
random models of tiny configurations, so nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn

MAX_PARAMS = 300_000_000


class Built(NamedTuple):
    """A model with the arguments of one call."""

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


# -- torchvision: the smallest image that a family takes, where 64 pixels are not enough
VISION_SIZES = {
    "inception_v3": 96, "googlenet": 96, "vit": 224, "maxvit": 224, "densenet": 96, "alexnet": 96, "squeezenet": 96,
    "swin_v2": 128, "raft": 128, "ssd300": 300, "ssdlite320": 320,
}  # fmt: skip
VIDEO_SHAPES = {"mvit": (1, 3, 16, 224, 224), "s3d": (1, 3, 16, 224, 224), "swin3d": (1, 3, 8, 64, 64)}


def vision_names() -> list[str]:
    """Models below 300 M parameters of all but the quantization module, smallest groups first."""
    from torchvision import models

    groups = (models, models.segmentation, models.detection, models.video, models.optical_flow)
    return [name for group in groups for name in models.list_models(module=group) if _vision_params(name) < MAX_PARAMS]


def _vision_params(name: str) -> int:
    from torchvision import models

    weights = models.get_model_weights(name)
    sizes = [entry.meta["num_params"] for entry in weights]
    return min(sizes) if sizes else 0


def build_vision(name: str) -> Built:
    """One torchvision model with random weights."""
    from torchvision import models

    size = next((size for start, size in VISION_SIZES.items() if name.startswith(start)), 64)
    if name in models.list_models(module=models.detection):
        fixed = name.startswith("ssd")
        options = {} if fixed else {"min_size": 128, "max_size": 128}
        model = models.get_model(name, weights=None, weights_backbone=None, **options)
        return Built(model, ([torch.rand(3, size if fixed else 96, size if fixed else 128)],), {})
    if name in models.list_models(module=models.segmentation):
        return Built(models.get_model(name, weights=None, weights_backbone=None), (torch.randn(1, 3, size, size),), {})
    if name in models.list_models(module=models.video):
        shape = next((s for start, s in VIDEO_SHAPES.items() if name.startswith(start)), (1, 3, 4, 64, 64))
        return Built(models.get_model(name, weights=None), (torch.randn(shape),), {})
    if name in models.list_models(module=models.optical_flow):
        return Built(models.get_model(name, weights=None), (torch.randn(1, 3, size, size),) * 2, {})
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return Built(models.get_model(name, weights=None, **options), (torch.randn(1, 3, size, size),), {})


# -- timm
TIMM = [
    "resnet10t", "resnetv2_50", "resnest14d", "res2net50_14w_8s", "skresnet18", "seresnext26t_32x4d",
    "hrnet_w18_small", "dla34", "ese_vovnet19b_dw", "dpn68", "nf_regnet_b0", "tf_efficientnetv2_b0",
    "mobilenetv4_conv_small", "ghostnet_100", "rexnet_100", "mobileone_s0", "fastvit_t8", "mobilevit_xxs",
    "edgenext_xx_small", "convnextv2_atto", "inception_v4", "pnasnet5large", "poolformerv2_s12", "caformer_s18",
    "vit_tiny_patch16_224", "deit_tiny_distilled_patch16_224", "swinv2_tiny_window8_256", "beit_base_patch16_224",
    "cait_xxs24_224", "crossvit_9_240", "coat_tiny", "convit_tiny", "levit_128s", "pit_ti_224", "pvt_v2_b0",
    "twins_svt_small", "xcit_nano_12_p8_224", "tnt_s_patch16_224", "nest_tiny", "mixer_s32_224", "gmlp_s16_224",
    "volo_d1_224", "sequencer2d_s", "focalnet_tiny_srf", "davit_tiny", "efficientformer_l1",
    "eva02_tiny_patch14_224", "hiera_tiny_224", "maxvit_rmlp_pico_rw_256", "coatnet_pico_rw_224", "mambaout_femto",
    "repvit_m0_9", "tiny_vit_5m_224", "halonet26t", "lambda_resnet26t", "bat_resnext26ts",
]  # fmt: skip


def build_timm(name: str) -> Built:
    """One timm model with random weights and an image of its own size."""
    import timm

    model: Any = timm.create_model(name, pretrained=False)
    return Built(model, (torch.randn(1, *model.default_cfg["input_size"]),), {})


# -- transformers: class, configuration class, what is smaller than its default, input
SMALL = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
SEQ2SEQ = {
    "vocab_size": 99, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 37, "decoder_ffn_dim": 37, "max_position_embeddings": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
IMAGE = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip
GROUPED = SMALL | {"num_key_value_heads": 2, "head_dim": 8}
T5 = {
    "vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 37, "num_layers": 2, "num_heads": 4, "pad_token_id": 0,
    "decoder_start_token_id": 0,
}  # fmt: skip
SPEECH = SMALL | {
    "conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2, "num_feat_extract_layers": 2,
}  # fmt: skip


def text() -> dict[str, Any]:
    return {"input_ids": torch.arange(3, 15).reshape(2, 6)}


def padded() -> dict[str, Any]:
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
    return {**text(), "attention_mask": mask}


def seq2seq() -> dict[str, Any]:
    return {**text(), "decoder_input_ids": torch.arange(3, 11).reshape(2, 4)}


def image() -> dict[str, Any]:
    return {"pixel_values": torch.randn(1, 3, 32, 32)}


def sound() -> dict[str, Any]:
    return {"input_values": torch.randn(1, 1000)}


def frames() -> dict[str, Any]:
    return {"pixel_values": torch.randn(1, 4, 3, 32, 32)}


def pictures_with_text() -> dict[str, Any]:
    return {**text(), "pixel_values": torch.randn(2, 3, 32, 32)}


def _whisper() -> dict[str, Any]:
    return {"input_features": torch.randn(1, 8, 40), "decoder_input_ids": torch.tensor([[1, 5, 6]])}


def _boxes() -> dict[str, Any]:
    return {**text(), "bbox": torch.randint(0, 50, (2, 6, 4)).sort(-1).values}


def _series() -> dict[str, Any]:
    return {
        "past_values": torch.rand(2, 12) + 1,
        "past_time_features": torch.randn(2, 12, 1),
        "past_observed_mask": torch.ones(2, 12),
        "future_values": torch.rand(2, 4) + 1,
        "future_time_features": torch.randn(2, 4, 1),
    }


TRANSFORMERS: dict[str, tuple[str, str, dict[str, Any], Callable[[], dict[str, Any]]]] = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 99}, padded),
    "gpt_neo": (
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        {
            "vocab_size": 99,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
        },
        text,
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SMALL, text),
    "gptj": (
        "GPTJForCausalLM",
        "GPTJConfig",
        {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4},
        text,
    ),
    "opt": ("OPTForCausalLM", "OPTConfig", SMALL | {"ffn_dim": 37, "word_embed_proj_dim": 32}, padded),
    "bloom": (
        "BloomForCausalLM",
        "BloomConfig",
        {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4},
        padded,
    ),
    "falcon": ("FalconForCausalLM", "FalconConfig", SMALL, text),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED, padded),
    "mistral": ("MistralForCausalLM", "MistralConfig", GROUPED | {"sliding_window": 4}, padded),
    "mixtral": (
        "MixtralForCausalLM",
        "MixtralConfig",
        GROUPED | {"intermediate_size": 48, "num_local_experts": 4, "num_experts_per_tok": 2},
        text,
    ),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", GROUPED, text),
    "qwen2_moe": (
        "Qwen2MoeForCausalLM",
        "Qwen2MoeConfig",
        GROUPED
        | {
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 16,
        },
        text,
    ),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", GROUPED, text),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", GROUPED | {"sliding_window": 4}, text),
    "phi": ("PhiForCausalLM", "PhiConfig", SMALL, text),
    "olmo": ("OlmoForCausalLM", "OlmoConfig", SMALL, text),
    "stablelm": ("StableLmForCausalLM", "StableLmConfig", SMALL | {"num_key_value_heads": 4}, text),
    "mamba": (
        "MambaForCausalLM",
        "MambaConfig",
        {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
        text,
    ),
    "mamba2": (
        "Mamba2ForCausalLM",
        "Mamba2Config",
        {
            "vocab_size": 99,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "state_size": 4,
            "num_heads": 8,
            "head_dim": 8,
            "n_groups": 1,
            "chunk_size": 4,
        },
        text,
    ),
    "rwkv": (
        "RwkvForCausalLM",
        "RwkvConfig",
        {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "context_length": 16},
        text,
    ),
    "bert": ("BertForMaskedLM", "BertConfig", SMALL, padded),
    "roberta": ("RobertaForMaskedLM", "RobertaConfig", SMALL, padded),
    "distilbert": (
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37},
        padded,
    ),
    "albert": ("AlbertForMaskedLM", "AlbertConfig", SMALL | {"embedding_size": 16}, text),
    "electra": ("ElectraForMaskedLM", "ElectraConfig", SMALL | {"embedding_size": 16}, text),
    "deberta_v2": (
        "DebertaV2ForMaskedLM",
        "DebertaV2Config",
        SMALL | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
        padded,
    ),
    "mpnet": ("MPNetForMaskedLM", "MPNetConfig", SMALL, text),
    "xlnet": (
        "XLNetLMHeadModel",
        "XLNetConfig",
        {"vocab_size": 99, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 37},
        text,
    ),
    "longformer": ("LongformerForMaskedLM", "LongformerConfig", SMALL | {"attention_window": 4}, padded),
    "big_bird": ("BigBirdForMaskedLM", "BigBirdConfig", SMALL | {"attention_type": "original_full"}, text),
    "funnel": (
        "FunnelModel",
        "FunnelConfig",
        {"vocab_size": 99, "block_sizes": [1, 1], "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 37},
        text,
    ),
    "fnet": ("FNetForMaskedLM", "FNetConfig", SMALL, text),
    "t5": ("T5ForConditionalGeneration", "T5Config", T5, seq2seq),
    "mt5": ("MT5ForConditionalGeneration", "MT5Config", T5, seq2seq),
    "bart": ("BartForConditionalGeneration", "BartConfig", SEQ2SEQ, seq2seq),
    "pegasus": ("PegasusForConditionalGeneration", "PegasusConfig", SEQ2SEQ, seq2seq),
    "marian": ("MarianMTModel", "MarianConfig", SEQ2SEQ, seq2seq),
    "led": (
        "LEDForConditionalGeneration",
        "LEDConfig",
        {k: v for k, v in SEQ2SEQ.items() if k != "max_position_embeddings"}
        | {"attention_window": 4, "max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64},
        seq2seq,
    ),
    "vit": ("ViTForImageClassification", "ViTConfig", IMAGE, image),
    "deit": ("DeiTForImageClassification", "DeiTConfig", IMAGE, image),
    "beit": ("BeitForImageClassification", "BeitConfig", IMAGE, image),
    "dinov2": ("Dinov2Model", "Dinov2Config", IMAGE, image),
    "swin": (
        "SwinForImageClassification",
        "SwinConfig",
        {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4},
        image,
    ),
    "convnext": (
        "ConvNextForImageClassification",
        "ConvNextConfig",
        {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2},
        image,
    ),
    "segformer": (
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        {
            "num_encoder_blocks": 2,
            "depths": [1, 1],
            "sr_ratios": [2, 1],
            "hidden_sizes": [16, 32],
            "patch_sizes": [7, 3],
            "strides": [4, 2],
            "num_attention_heads": [1, 2],
            "mlp_ratios": [2, 2],
            "decoder_hidden_size": 16,
        },
        image,
    ),
    "yolos": (
        "YolosForObjectDetection",
        "YolosConfig",
        IMAGE | {"image_size": [32, 32], "num_detection_tokens": 4},
        image,
    ),
    "detr": (
        "DetrForObjectDetection",
        "DetrConfig",
        {
            "use_timm_backbone": False,
            "use_pretrained_backbone": False,
            "backbone": None,
            "backbone_config": {
                "model_type": "resnet",
                "embedding_size": 8,
                "hidden_sizes": [8, 16],
                "depths": [1, 1],
                "layer_type": "basic",
                "out_features": ["stage2"],
            },
            "num_queries": 4,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "d_model": 32,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 37,
            "decoder_ffn_dim": 37,
        },
        image,
    ),
    "vit_mae": (
        "ViTMAEForPreTraining",
        "ViTMAEConfig",
        IMAGE
        | {
            "decoder_hidden_size": 16,
            "decoder_num_hidden_layers": 1,
            "decoder_num_attention_heads": 2,
            "decoder_intermediate_size": 16,
        },
        image,
    ),
    "videomae": (
        "VideoMAEForVideoClassification",
        "VideoMAEConfig",
        IMAGE | {"num_frames": 4, "tubelet_size": 2},
        frames,
    ),
    "timesformer": ("TimesformerForVideoClassification", "TimesformerConfig", IMAGE | {"num_frames": 4}, frames),
    "clip": (
        "CLIPModel",
        "CLIPConfig",
        {"text_config": SMALL, "vision_config": IMAGE, "projection_dim": 16},
        pictures_with_text,
    ),
    "siglip": (
        "SiglipModel",
        "SiglipConfig",
        {"text_config": SMALL | {"projection_size": 32}, "vision_config": IMAGE},
        pictures_with_text,
    ),
    "vilt": ("ViltModel", "ViltConfig", SMALL | {"image_size": 32, "patch_size": 8}, pictures_with_text),
    "layoutlm": ("LayoutLMForMaskedLM", "LayoutLMConfig", SMALL | {"max_2d_position_embeddings": 64}, _boxes),
    "wav2vec2": ("Wav2Vec2ForCTC", "Wav2Vec2Config", SPEECH, sound),
    "hubert": ("HubertModel", "HubertConfig", SPEECH, sound),
    "whisper": (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {k: v for k, v in SEQ2SEQ.items() if k != "max_position_embeddings"}
        | {"num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 20},
        _whisper,
    ),
    "encodec": (
        "EncodecModel",
        "EncodecConfig",
        {
            "num_filters": 4,
            "hidden_size": 16,
            "codebook_size": 16,
            "codebook_dim": 16,
            "num_lstm_layers": 1,
            "upsampling_ratios": [4, 2],
        },
        lambda: {"input_values": torch.randn(1, 1, 400)},
    ),
    "time_series": (
        "TimeSeriesTransformerForPrediction",
        "TimeSeriesTransformerConfig",
        {
            "prediction_length": 4,
            "context_length": 8,
            "lags_sequence": [1, 2, 4],
            "num_time_features": 1,
            "d_model": 16,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "encoder_ffn_dim": 16,
            "decoder_ffn_dim": 16,
        },
        _series,
    ),
    "perceiver": (
        "PerceiverForMaskedLM",
        "PerceiverConfig",
        {
            "vocab_size": 99,
            "d_model": 16,
            "num_latents": 4,
            "d_latents": 32,
            "num_blocks": 1,
            "num_self_attends_per_block": 2,
            "num_self_attention_heads": 2,
            "num_cross_attention_heads": 2,
            "max_position_embeddings": 6,
            "qk_channels": 16,
            "v_channels": 32,
        },
        padded,
    ),
}


def build_transformers(name: str) -> Built:
    """One transformers model of a tiny configuration with random weights."""
    import transformers

    model, config, options, inputs = TRANSFORMERS[name]
    return Built(getattr(transformers, model)(getattr(transformers, config)(**options)), (), inputs())


SETS: dict[str, tuple[Callable[[], list[str]], Callable[[str], Built]]] = {
    "transformers": (lambda: list(TRANSFORMERS), build_transformers),
    "torchvision": (vision_names, build_vision),
    "timm": (lambda: list(TIMM), build_timm),
}


def build(group: str, name: str) -> Built:
    """A model of one set in evaluation mode, from a fixed seed."""
    torch.manual_seed(0)
    built = SETS[group][1](name)
    built.model.eval()
    return built
