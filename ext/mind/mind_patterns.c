/*
 * mind_patterns.c - the patterns of mind_scan; mind_patterns.h says how they are written.
 *
 * Each asks for a verb and its object, so that neither alone is one: people do ignore previous
 * e-mails and act as best men. tests/sql/scan_cases.txt has both kinds.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mind_patterns.h"

#include "mind.h"

#define OVERRIDE MIND_SCAN_OVERRIDE
#define PERSONA  MIND_SCAN_PERSONA
#define LEAK     MIND_SCAN_LEAK
#define JAILS    MIND_SCAN_JAILBREAK
#define CONCEAL  MIND_SCAN_CONCEAL
#define ADDRESS  MIND_SCAN_ADDRESS
#define ENCODED  MIND_SCAN_ENCODED
#define LOW      MIND_LOW
#define MEDIUM   MIND_MEDIUM
#define HIGH     MIND_HIGH
#define CRITICAL MIND_CRITICAL
#define ANY      MIND_ANYWHERE

#define RULES                                                                                      \
    "instructions|instruction|prompts|prompt|rules|guidelines|directions|directives|commands|"     \
    "programming|constraints|restrictions|guardrails|safeguards|policies"

const mind_pattern mind_patterns[] = {
    {OVERRIDE, CRITICAL, ANY,
     "ignore|disregard|forget|override|bypass|overrule|discard ~24 "
     "previous|prior|above|earlier|preceding|foregoing|former|original|initial|existing|system|"
     "safety|developer ~24 " RULES,
     NULL},
    {OVERRIDE, CRITICAL, ANY,
     "ignore|disregard|forget|override|bypass all|any|your|every|these|those ~14 " RULES, NULL},
    {OVERRIDE, HIGH, ANY,
     "ignore|disregard|forget everything|anything|all ~12 above|you_were_told|you_have_been_told|"
     "you_know|youve_been_told",
     NULL},
    {OVERRIDE, HIGH, ANY, "ignore|disregard the? above and|directions|instructions|prompt", NULL},
    {OVERRIDE, CRITICAL, MIND_CLAUSE, "ignore|disregard previous|prior|all_previous|all_prior",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "override ~12 instructions|guardrails|safety_protocols|safety_filters|content_filter|"
     "content_filters|system_prompt",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "do_not|dont|stop|cease|no_longer follow|following|obey|obeying "
     "previous|prior|your|the_original|the_system|the_above|any_previous ~12 " RULES,
     NULL},
    {OVERRIDE, MEDIUM, ANY,
     "follow|obey these|only_these|the_following|my_new|only_my ~10 instructions|commands|rules "
     "instead|from_now_on|only",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "ignoriere|ignorieren_sie|ignorier|vergiss|vergessen_sie|missachte|ubergehe ~24 "
     "vorherigen|vorherige|bisherigen|bisherige|obigen|obige|vorigen|fruheren|alle|deine|samtliche "
     "~20 anweisungen|anweisung|regeln|instruktionen|befehle|vorgaben|prompt",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "ignore|ignorez|ignorer|oublie|oubliez|neglige ~20 instructions|consignes|regles|directives "
     "~4 "
     "precedentes|anterieures|ci_dessus|recues|initiales",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "ignora|ignore|olvida|olvide|descarta|ignorad ~20 instrucciones|indicaciones|reglas|ordenes "
     "~8 "
     "anteriores|previas|precedentes|de_arriba",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "ignore|ignora|esqueca|esquece|desconsidere|desconsidera ~20 "
     "instrucoes|regras|orientacoes|comandos ~8 anteriores|previas|acima",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "ignora|ignorate|ignori|dimentica|dimenticate|trascura ~20 "
     "istruzioni|regole|indicazioni|direttive ~8 precedenti|anteriori|sopra|iniziali",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "negeer|vergeet ~20 vorige|eerdere|bovenstaande|voorgaande|alle ~12 "
     "instructies|aanwijzingen|regels|opdrachten",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "zignoruj|ignoruj|zapomnij ~20 poprzednie|wczesniejsze|wszystkie|powyzsze|poprzednich ~12 "
     "instrukcje|polecenia|zasady|instrukcjach|reguly",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "onceki|yukaridaki|tum ~16 talimatlari|kurallari|komutlari ~12 "
     "yok_say|gormezden_gel|unut|dikkate_alma",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "игнорируй|игнорируйте|проигнорируй|проигнорируйте|забудь|забудьте|отмени ~24 "
     "предыдущие|прежние|прошлые|все|вышеуказанные|системные|свои|предыдущих ~20 "
     "инструкции|указания|правила|команды|установки|инструкциях",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "ігноруй|ігноруйте|проігноруй|забудь|забудьте ~24 попередні|усі|всі|свої ~20 "
     "інструкції|вказівки|правила|команди",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "忽略|无视|無視|忘记|忘記|忘掉|不要理会 ~12 之前|以上|先前|前面|上面|所有|原来 ~8 "
     "指令|指示|提示|规则|規則|命令|设定|設定|说明",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "以前|前|上記|これまで|すべて|全て ~10 指示|命令|ルール|プロンプト|指令|制約 ~6 "
     "無視|忘れ|従わない",
     NULL},
    {OVERRIDE, HIGH, ANY, "이전|위|앞|모든|기존 ~12 지시|명령|지침|규칙|프롬프트 ~8 무시|잊어",
     NULL},
    {OVERRIDE, HIGH, ANY,
     "تجاهل|تجاهلي|انس|اهمل ~20 التعليمات|الاوامر|القواعد|تعليمات ~6 السابقة|اعلاه", NULL},
    {OVERRIDE, HIGH, ANY,
     "पिछले|पूर्व|सभी|ऊपर ~16 "
     "निर्देशों|निर्देश|नियमों|आदेशों ~12 अनदेखा|भूल|नजरअंदाज",
     NULL},

    {PERSONA, HIGH, ANY,
     "you_are_now|youre_now|you_are_from_now_on|you_will_now_be|you_are_no_longer ~24 "
     "ai|bot|chatbot|hacker|root|superuser|dan|unrestricted|unfiltered|uncensored|jailbroken|evil|"
     "terminal|linux_shell|pirate|developer_mode|god_mode|dan_mode|admin_mode|debug_mode|"
     "maintenance_mode|unrestricted_mode|a_language_model|bound_by",
     NULL},
    {PERSONA, HIGH, ANY,
     "from_now_on|starting_now|henceforth ~3? you? ~8 "
     "obey|ignore|pretend|act_as|are_dan|are_an_ai|have_no_restrictions|have_no_rules|"
     "are_unrestricted",
     NULL},
    {PERSONA, MEDIUM, ANY, "pretend ~5? you_are|youre|you_have_no|you_can", NULL},
    {PERSONA, MEDIUM, MIND_CLAUSE,
     "please? act|behave|respond|answer as|like_you_are an|a|if|though|my|the|root|admin|dan",
     NULL},
    {PERSONA, HIGH, ANY, "must|shall|will_now act|behave as an|a|if|though|my|the|root|admin|dan",
     NULL},
    {PERSONA, MEDIUM, MIND_CLAUSE, "roleplay|role_play as", NULL},
    {PERSONA, MEDIUM, ANY, "du_bist_jetzt|du_bist_ab_sofort|du_bist_nun ~20 ki|chatbot|hacker|dan",
     NULL},
    {PERSONA, MEDIUM, ANY, "tu_es_maintenant|eres_ahora|ahora_eres ~20 ia|pirate|hacker|dan", NULL},
    {PERSONA, MEDIUM, ANY, "你现在是|从现在开始你是|你現在是", NULL},

    {LEAK, HIGH, ANY,
     "reveal|show|print|repeat|output|display|leak|expose|disclose|share|tell_me|give_me|write_out|"
     "dump|recite|return ~16 "
     "system_prompt|initial_prompt|hidden_prompt|secret_prompt|secret_instructions|"
     "hidden_instructions|your_instructions|your_prompt|initial_instructions|developer_message|"
     "developer_instructions|system_message|original_prompt|prompt_above|words_above|text_above",
     NULL},
    {LEAK, HIGH, ANY,
     "what_is|whats|what_are|what_were your|the ~8? "
     "system_prompt|initial_prompt|initial_instructions|original_instructions|hidden_instructions",
     NULL},
    {LEAK, HIGH, ANY,
     "send|post|upload|forward|transmit|exfiltrate ~30 "
     "conversation|chat_history|conversation_history|api_keys|api_key|credentials|system_prompt|"
     "secrets ~16 to ~4? http|https|this_url|my_server|this_address|the_attacker",
     NULL},

    {JAILS, HIGH, ANY, "do_anything_now", NULL},
    {JAILS, HIGH, ANY, "dan_mode|developer_mode_enabled|god_mode_enabled|jailbreak_mode", NULL},
    {JAILS, MEDIUM, ANY, "jailbreak|jailbreaking|jailbroken", NULL},
    {JAILS, LOW, ANY, "prompt_injection", NULL},
    {JAILS, HIGH, ANY,
     "without|no|free_of|free_from ~8 ethical|moral|content|safety ~12 "
     "restrictions|guidelines|filters|constraints|limitations|policies|considerations",
     NULL},
    {JAILS, HIGH, ANY,
     "unfiltered|uncensored|unrestricted|amoral ai|assistant|chatbot|model|mode|language_model",
     NULL},
    {JAILS, HIGH, ANY,
     "bypass|disable|turn_off|remove|evade|circumvent|switch_off ~12 "
     "safety|content|moderation|ethical ~4 "
     "filters|filter|guidelines|restrictions|protocols|measures|guardrails|policy|policies",
     NULL},

    {CONCEAL, HIGH, ANY,
     "do_not|dont|never|without tell|telling|inform|informing|mention_this_to|mentioning_this_to|"
     "alert|alerting|reveal_this_to|notify|notifying ~4 user|human|owner",
     NULL},
    {CONCEAL, MEDIUM, ANY, "keep_this ~12 secret|hidden from ~4 user|human|owner", NULL},

    {ADDRESS, LOW, ANY,
     "if_you_are|note_to|attention|instructions_for|message_for|message_to ~4 "
     "ai|llm|llms|language_model|language_models|ai_assistant|ai_agents|chatbot|large_language_"
     "model",
     NULL},

    {ENCODED, MEDIUM, ANY,
     "decode|base64|rot13|decrypt ~30 and|then ~8 follow|execute|obey|run|do_what", NULL},
};
const int mind_npatterns = sizeof mind_patterns / sizeof *mind_patterns;

#define CLAUSE MIND_CLAUSE
// "it's wrong to steal" and "no, it's fine" put nothing right
#define RIGHT                                                                                      \
    "to|for|of|with|fine|ok|okay|good|great|alright|all|cool|easy|fun|nothing|not_a_problem"

const mind_pattern mind_corrections[] = {
    {0, 0, ANY,
     "thats|that_is|that_was|this_is|its|it_is|youre|you_are|was all|just|still|completely? "
     "wrong|incorrect|mistaken|inaccurate|untrue|not_right|not_correct|not_true|not_quite_right|"
     "not_accurate|not_what_i",
     RIGHT},
    {0, 0, CLAUSE,
     "not_quite|not_exactly|wrong|incorrect|correction|to_clarify|let_me_clarify|to_be_clear|"
     "let_me_correct|small_correction|i_misspoke|scratch_that|strike_that|i_stand_corrected",
     "number|way"},
    {0, 0, CLAUSE, "actually", "yes|yeah|sure|ok|thanks|thank"},
    {0, 0, ANY,
     "what_i_meant|i_actually_meant|i_really_meant|you_misunderstood|you_misheard|"
     "you_got_it_wrong|you_got_that_wrong|you_have_it_wrong|you_have_that_wrong|i_never_said|"
     "i_didnt_say|i_did_not_say|thats_not_what|that_is_not_what|i_take_that_back|please_correct_"
     "that|"
     "please_correct_this",
     NULL},
    {0, 0, ANY, "i_meant", "to|well|no|it|a_lot|so_much|every"},
    {0, 0, CLAUSE,
     "no|nope|sorry its|it_is|it_was|it_should|i_said|i_meant|my_name_is|thats_not|that_is_not|"
     "the_correct|the_right|not|actually|i_told_you",
     RIGHT},
    {0, 0, ANY, "it_should_be|it_should_have_been|make_that|change_that_to ~16 not|instead_of",
     NULL},
    {0, 0, ANY,
     "das_stimmt_nicht|stimmt_nicht|das_ist_falsch|das_ist_nicht_richtig|das_war_falsch|ich_meinte|"
     "du_irrst_dich|sie_irren_sich|das_habe_ich_nicht_gesagt|das_hast_du_falsch",
     NULL},
    {0, 0, CLAUSE,
     "eigentlich|nicht_ganz|korrektur|falsch|nein_es_ist|nein_das_ist_nicht|nein_nicht", NULL},
    {0, 0, ANY,
     "cest_faux|ce_nest_pas_vrai|ce_nest_pas_ca|ce_nest_pas_exact|cest_pas_ca|cest_pas_vrai|"
     "je_voulais_dire|tu_te_trompes|vous_vous_trompez|je_nai_pas_dit|jai_pas_dit",
     NULL},
    {0, 0, CLAUSE,
     "en_fait|pas_tout_a_fait|pas_exactement|correction|non_cest|non_ce_nest_pas|non_pas",
     "bon|bien|super|parfait|ok|gentil"},
    {0, 0, ANY,
     "eso_no_es_cierto|eso_no_es_correcto|eso_es_incorrecto|eso_esta_mal|eso_no_es_verdad|quise_"
     "decir|"
     "queria_decir|me_referia_a|te_equivocas|se_equivoca|no_he_dicho|yo_no_dije|no_es_correcto",
     NULL},
    {0, 0, CLAUSE, "en_realidad|no_exactamente|correccion|no_es_asi|no_no_es", NULL},
    {0, 0, ANY,
     "isso_esta_errado|isso_nao_esta_certo|isso_nao_e_verdade|eu_quis_dizer|quis_dizer|voce_se_"
     "enganou|"
     "nao_foi_isso_que|eu_nao_disse",
     NULL},
    {0, 0, CLAUSE, "na_verdade|correcao|nao_exatamente|errado|nao_e_isso", NULL},
    {0, 0, ANY,
     "non_e_vero|non_e_corretto|e_sbagliato|intendevo|volevo_dire|ti_sbagli|si_sbaglia|non_ho_"
     "detto",
     NULL},
    {0, 0, CLAUSE, "in_realta|non_esattamente|correzione|sbagliato|no_non_e", NULL},
    {0, 0, ANY,
     "dat_klopt_niet|dat_is_niet_waar|dat_is_fout|dat_is_niet_juist|ik_bedoelde|je_vergist_je|"
     "dat_heb_ik_niet_gezegd",
     NULL},
    {0, 0, CLAUSE, "eigenlijk|niet_helemaal|correctie|fout|nee_het_is", NULL},
    {0, 0, ANY,
     "to_nieprawda|to_nie_tak|to_nie_jest_prawda|to_niepoprawne|mialem_na_mysli|mialam_na_mysli|"
     "chodzilo_mi_o|mylisz_sie|to_blad|tego_nie_powiedzialem|tego_nie_powiedzialam",
     NULL},
    {0, 0, CLAUSE, "wlasciwie|nie_do_konca|poprawka|sprostowanie", NULL},
    {0, 0, ANY,
     "bu_yanlis|bu_dogru_degil|oyle_degil|tam_olarak_degil|demek_istedigim|kastettigim|"
     "yaniliyorsun|"
     "oyle_demedim",
     NULL},
    {0, 0, CLAUSE, "aslinda|duzeltme|yanlis|hayir_oyle", NULL},
    {0, 0, ANY,
     "это_неверно|это_неправильно|это_не_так|это_неправда|я_имел_в_виду|я_имела_в_виду|ты_"
     "ошибаешься|"
     "вы_ошибаетесь|ты_ошибся|вы_ошиблись|я_не_говорил|я_не_говорила|я_этого_не",
     NULL},
    {0, 0, CLAUSE, "на_самом_деле|вообще_то|неправильно|неверно|не_совсем|поправка|нет_не_так",
     NULL},
    {0, 0, ANY, "це_неправильно|це_не_так|це_неправда|я_мав_на_увазі|я_мала_на_увазі|ти_помиляєшся",
     NULL},
    {0, 0, CLAUSE, "насправді|виправлення|неправильно|не_зовсім", NULL},
    {0, 0, ANY, "هذا_خطا|هذا_غير_صحيح|ليس_صحيحا|غير_صحيح|كنت_اقصد|قصدت|انت_مخطئ|لم_اقل", NULL},
    {0, 0, CLAUSE, "في_الواقع|تصحيح|خطا", NULL},
    {0, 0, ANY, "यह_गलत_है|ये_गलत_है|यह_सही_नहीं_है|मेरा_मतलब|मैंने_यह_नहीं_कहा", NULL},
    {0, 0, CLAUSE, "दरअसल|असल_में|गलत", NULL},
    {0, 0, ANY,
     "这不对|你错了|说错了|弄错了|搞错了|不是这样|你说的不对|我的意思是|更正一下|纠正一下|這不對|"
     "你錯了|"
     "不是這樣|我没说过",
     NULL},
    {0, 0, CLAUSE, "不对|不對|其实|其實|更正", NULL},
    {0, 0, ANY,
     "それは違|違います|間違いです|間違っています|間違ってる|そうじゃなくて|そうではなくて|"
     "訂正します|"
     "言ってません|言っていません",
     NULL},
    {0, 0, CLAUSE, "違う|訂正|実は", NULL},
    {0, 0, ANY,
     "틀렸|그게_아니|제_말은|내_말은|그런_말_한_적|정정합니다|오해하|잘못_아셨|잘못_알고", NULL},
    {0, 0, CLAUSE, "사실은|정정", NULL},
};
const int mind_ncorrections = sizeof mind_corrections / sizeof *mind_corrections;
