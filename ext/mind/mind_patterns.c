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
     "safety|developer ~24 " RULES},
    {OVERRIDE, CRITICAL, ANY,
     "ignore|disregard|forget|override|bypass all|any|your|every|these|those ~14 " RULES},
    {OVERRIDE, HIGH, ANY,
     "ignore|disregard|forget everything|anything|all ~12 above|you_were_told|you_have_been_told|"
     "you_know|youve_been_told"},
    {OVERRIDE, HIGH, ANY, "ignore|disregard the? above and|directions|instructions|prompt"},
    {OVERRIDE, CRITICAL, MIND_CLAUSE, "ignore|disregard previous|prior|all_previous|all_prior"},
    {OVERRIDE, HIGH, ANY,
     "override ~12 instructions|guardrails|safety_protocols|safety_filters|content_filter|"
     "content_filters|system_prompt"},
    {OVERRIDE, HIGH, ANY,
     "do_not|dont|stop|cease|no_longer follow|following|obey|obeying "
     "previous|prior|your|the_original|the_system|the_above|any_previous ~12 " RULES},
    {OVERRIDE, MEDIUM, ANY,
     "follow|obey these|only_these|the_following|my_new|only_my ~10 instructions|commands|rules "
     "instead|from_now_on|only"},
    {OVERRIDE, HIGH, ANY,
     "ignoriere|ignorieren_sie|ignorier|vergiss|vergessen_sie|missachte|ubergehe ~24 "
     "vorherigen|vorherige|bisherigen|bisherige|obigen|obige|vorigen|fruheren|alle|deine|samtliche "
     "~20 anweisungen|anweisung|regeln|instruktionen|befehle|vorgaben|prompt"},
    {OVERRIDE, HIGH, ANY,
     "ignore|ignorez|ignorer|oublie|oubliez|neglige ~20 instructions|consignes|regles|directives "
     "~4 "
     "precedentes|anterieures|ci_dessus|recues|initiales"},
    {OVERRIDE, HIGH, ANY,
     "ignora|ignore|olvida|olvide|descarta|ignorad ~20 instrucciones|indicaciones|reglas|ordenes "
     "~8 "
     "anteriores|previas|precedentes|de_arriba"},
    {OVERRIDE, HIGH, ANY,
     "ignore|ignora|esqueca|esquece|desconsidere|desconsidera ~20 "
     "instrucoes|regras|orientacoes|comandos ~8 anteriores|previas|acima"},
    {OVERRIDE, HIGH, ANY,
     "ignora|ignorate|ignori|dimentica|dimenticate|trascura ~20 "
     "istruzioni|regole|indicazioni|direttive ~8 precedenti|anteriori|sopra|iniziali"},
    {OVERRIDE, HIGH, ANY,
     "negeer|vergeet ~20 vorige|eerdere|bovenstaande|voorgaande|alle ~12 "
     "instructies|aanwijzingen|regels|opdrachten"},
    {OVERRIDE, HIGH, ANY,
     "zignoruj|ignoruj|zapomnij ~20 poprzednie|wczesniejsze|wszystkie|powyzsze|poprzednich ~12 "
     "instrukcje|polecenia|zasady|instrukcjach|reguly"},
    {OVERRIDE, HIGH, ANY,
     "onceki|yukaridaki|tum ~16 talimatlari|kurallari|komutlari ~12 "
     "yok_say|gormezden_gel|unut|dikkate_alma"},
    {OVERRIDE, HIGH, ANY,
     "игнорируй|игнорируйте|проигнорируй|проигнорируйте|забудь|забудьте|отмени ~24 "
     "предыдущие|прежние|прошлые|все|вышеуказанные|системные|свои|предыдущих ~20 "
     "инструкции|указания|правила|команды|установки|инструкциях"},
    {OVERRIDE, HIGH, ANY,
     "ігноруй|ігноруйте|проігноруй|забудь|забудьте ~24 попередні|усі|всі|свої ~20 "
     "інструкції|вказівки|правила|команди"},
    {OVERRIDE, HIGH, ANY,
     "忽略|无视|無視|忘记|忘記|忘掉|不要理会 ~12 之前|以上|先前|前面|上面|所有|原来 ~8 "
     "指令|指示|提示|规则|規則|命令|设定|設定|说明"},
    {OVERRIDE, HIGH, ANY,
     "以前|前|上記|これまで|すべて|全て ~10 指示|命令|ルール|プロンプト|指令|制約 ~6 "
     "無視|忘れ|従わない"},
    {OVERRIDE, HIGH, ANY, "이전|위|앞|모든|기존 ~12 지시|명령|지침|규칙|프롬프트 ~8 무시|잊어"},
    {OVERRIDE, HIGH, ANY,
     "تجاهل|تجاهلي|انس|اهمل ~20 التعليمات|الاوامر|القواعد|تعليمات ~6 السابقة|اعلاه"},
    {OVERRIDE, HIGH, ANY,
     "पिछले|पूर्व|सभी|ऊपर ~16 "
     "निर्देशों|निर्देश|नियमों|आदेशों ~12 अनदेखा|भूल|नजरअंदाज"},

    {PERSONA, HIGH, ANY,
     "you_are_now|youre_now|you_are_from_now_on|you_will_now_be|you_are_no_longer ~24 "
     "ai|bot|chatbot|hacker|root|superuser|dan|unrestricted|unfiltered|uncensored|jailbroken|evil|"
     "terminal|linux_shell|pirate|developer_mode|god_mode|dan_mode|admin_mode|debug_mode|"
     "maintenance_mode|unrestricted_mode|a_language_model|bound_by"},
    {PERSONA, HIGH, ANY,
     "from_now_on|starting_now|henceforth ~3? you? ~8 "
     "obey|ignore|pretend|act_as|are_dan|are_an_ai|have_no_restrictions|have_no_rules|"
     "are_unrestricted"},
    {PERSONA, MEDIUM, ANY, "pretend ~5? you_are|youre|you_have_no|you_can"},
    {PERSONA, MEDIUM, MIND_CLAUSE,
     "please? act|behave|respond|answer as|like_you_are an|a|if|though|my|the|root|admin|dan"},
    {PERSONA, HIGH, ANY, "must|shall|will_now act|behave as an|a|if|though|my|the|root|admin|dan"},
    {PERSONA, MEDIUM, MIND_CLAUSE, "roleplay|role_play as"},
    {PERSONA, MEDIUM, ANY, "du_bist_jetzt|du_bist_ab_sofort|du_bist_nun ~20 ki|chatbot|hacker|dan"},
    {PERSONA, MEDIUM, ANY, "tu_es_maintenant|eres_ahora|ahora_eres ~20 ia|pirate|hacker|dan"},
    {PERSONA, MEDIUM, ANY, "你现在是|从现在开始你是|你現在是"},

    {LEAK, HIGH, ANY,
     "reveal|show|print|repeat|output|display|leak|expose|disclose|share|tell_me|give_me|write_out|"
     "dump|recite|return ~16 "
     "system_prompt|initial_prompt|hidden_prompt|secret_prompt|secret_instructions|"
     "hidden_instructions|your_instructions|your_prompt|initial_instructions|developer_message|"
     "developer_instructions|system_message|original_prompt|prompt_above|words_above|text_above"},
    {LEAK, HIGH, ANY,
     "what_is|whats|what_are|what_were your|the ~8? "
     "system_prompt|initial_prompt|initial_instructions|original_instructions|hidden_instructions"},
    {LEAK, HIGH, ANY,
     "send|post|upload|forward|transmit|exfiltrate ~30 "
     "conversation|chat_history|conversation_history|api_keys|api_key|credentials|system_prompt|"
     "secrets ~16 to ~4? http|https|this_url|my_server|this_address|the_attacker"},

    {JAILS, HIGH, ANY, "do_anything_now"},
    {JAILS, HIGH, ANY, "dan_mode|developer_mode_enabled|god_mode_enabled|jailbreak_mode"},
    {JAILS, MEDIUM, ANY, "jailbreak|jailbreaking|jailbroken"},
    {JAILS, LOW, ANY, "prompt_injection"},
    {JAILS, HIGH, ANY,
     "without|no|free_of|free_from ~8 ethical|moral|content|safety ~12 "
     "restrictions|guidelines|filters|constraints|limitations|policies|considerations"},
    {JAILS, HIGH, ANY,
     "unfiltered|uncensored|unrestricted|amoral ai|assistant|chatbot|model|mode|language_model"},
    {JAILS, HIGH, ANY,
     "bypass|disable|turn_off|remove|evade|circumvent|switch_off ~12 "
     "safety|content|moderation|ethical ~4 "
     "filters|filter|guidelines|restrictions|protocols|measures|guardrails|policy|policies"},

    {CONCEAL, HIGH, ANY,
     "do_not|dont|never|without tell|telling|inform|informing|mention_this_to|mentioning_this_to|"
     "alert|alerting|reveal_this_to|notify|notifying ~4 user|human|owner"},
    {CONCEAL, MEDIUM, ANY, "keep_this ~12 secret|hidden from ~4 user|human|owner"},

    {ADDRESS, LOW, ANY,
     "if_you_are|note_to|attention|instructions_for|message_for|message_to ~4 "
     "ai|llm|llms|language_model|language_models|ai_assistant|ai_agents|chatbot|large_language_"
     "model"},

    {ENCODED, MEDIUM, ANY,
     "decode|base64|rot13|decrypt ~30 and|then ~8 follow|execute|obey|run|do_what"},
};
const int mind_npatterns = sizeof mind_patterns / sizeof *mind_patterns;
